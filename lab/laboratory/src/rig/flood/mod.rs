//! `mesh rig flood`: attackers against an edge that serves regular reads.
//!
//! In each phase the load runs undisturbed for a while, and then together with attackers from other addresses
//! of the loopback network. The load must not fail or become slow; the edge must close each attacker's
//! connection in time.

pub(super) mod attackers;
mod phases;

use std::{net::SocketAddr, time::Duration};

use mesh::failure::Failure;
use rustix::process::{Resource, getrlimit};
use tokio::time::sleep;

use super::{
    args::{POLITE_RATE, SLACK},
    clients::{
        load::Load,
        samples::{Report, Sample, quantile},
    },
    engine::{Drill, Play, Playing},
    report::in_ms,
    world::{Setup, World},
};

/// Number of concurrent attackers.
const ATTACKERS: usize = 5000;
const ATTACKERS_SHORT: usize = 200;
/// Open files that this process needs in addition to those of its attackers.
const OTHER_FILES: usize = 1000;
/// How long the load is measured before an attack.
const STEADY: Duration = Duration::from_secs(10);
const STEADY_SHORT: Duration = Duration::from_secs(2);
/// Greatest p99 of the load during an attack, as a multiple of the p99 before.
const TIMES: u32 = 2;
/// A p99 below this is always accepted: it is dominated by the scheduler. Longer in the short form, which
/// runs debug builds.
const NO_TIME: Duration = Duration::from_millis(10);
const NO_TIME_SHORT: Duration = Duration::from_millis(100);
/// How long the load may take until all its requests succeed.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) const DRILL: Drill = Drill {
    name: "flood",
    about: "Attacks an edge under reads; reads must not fail or become slow",
    options: &[SLACK, POLITE_RATE],
    play: Play::Phases(Playing {
        world: |_, _| Setup { has_rows: true, has_blocks: true, ..Setup::default() },
        setup: |world| {
            let (rate, attackers) = (world.options.number("rate"), world.attackers());
            format!("{rate} requests a second beside {attackers} attackers")
        },
        // Each phase has its own load and waits until it is served normally.
        becomes_normal: |_| Box::pin(std::future::ready(true)),
        timeout: Duration::from_secs(300),
        phases: phases::PHASES,
    }),
};

/// The load of a phase, with its p99 before the attack.
struct MeasuredLoad {
    load: Load,
    steady: Duration,
    from: Duration,
}

impl World<'_> {
    /// Number of concurrent attackers: fewer where fewer files may be open. The phase with idle connections
    /// has twice as many.
    fn attackers(&self) -> usize {
        let files = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
        let wanted = self.play.either(ATTACKERS, ATTACKERS_SHORT);
        wanted.min(files.saturating_sub(OTHER_FILES) / 2).max(1)
    }

    /// Starts the load at an edge and measures it without an attack.
    async fn measured_load(&self, edge: SocketAddr) -> Result<MeasuredLoad, Failure> {
        let mix = self.read_requests.clone().mix(edge, edge);
        let load = Load::start(mix, self.options.number("rate"), self.seed)?;
        // Waits until connections are open and caches are filled.
        if !load.becomes_normal(Duration::MAX, TIMEOUT).await {
            return Err(Failure::failed("the load is not answered even without an attack"));
        }
        let from = load.now();
        sleep(self.play.either(STEADY, STEADY_SHORT)).await;
        let to = load.now();
        load.until_finished(to).await;
        let samples = load.samples(from, to);
        Ok(MeasuredLoad { steady: p99(&samples), from: load.now(), load })
    }

    /// Ends the load and reports it, with the bars that are common to all attacks.
    async fn load_report(&self, name: &str, measured_load: MeasuredLoad) -> Report {
        let MeasuredLoad { load, steady, from } = measured_load;
        let (samples, mut report) = load.report(name, from).await;
        report.none_fails();
        let no_time = self.play.either(NO_TIME, NO_TIME_SHORT);
        let bound = self.play.bound((steady * TIMES).max(no_time));
        report.bar_at_most(
            &format!("p99 of the others, {} without the attack", in_ms(steady)),
            p99(&samples),
            bound,
        );
        report
    }
}

fn p99(samples: &[Sample]) -> Duration {
    quantile(samples.iter().map(|sample| sample.took).collect(), 0.99)
}
