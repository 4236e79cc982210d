//! Environment of the attacks: a private mesh with filled tables, and a load that runs during each attack.

use std::{net::SocketAddr, time::Duration};

use mesh::{failure::Failure, terminal::print_line};
use rustix::process::{Resource, getrlimit};
use tokio::time::sleep;
use tokio_postgres::Client;

use crate::{
    private::{Layout, PrivateMesh, Servers},
    rig::{
        args::{FloodArgs, PlayArgs},
        clients::{
            load::Load,
            samples::{Report, Sample, quantile},
        },
        read_requests::{ReadRequests, start_filled},
        report::in_ms,
    },
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

/// The running mesh.
pub(super) struct Fixture<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) play: &'a PlayArgs,
    pub(super) servers: Servers,
    /// HTTP address of the usual edge.
    pub(super) edge: SocketAddr,
    /// Rate of the load, requests a second.
    pub(super) rate: u32,
    /// Number of concurrent attackers.
    pub(super) attacker_count: usize,
    database: Client,
    seed: u64,
}

/// The load of a phase, with its p99 before the attack.
pub(super) struct MeasuredLoad {
    load: Load,
    steady: Duration,
    from: Duration,
}

impl<'a> Fixture<'a> {
    /// Starts servers and services.
    pub(super) async fn start(
        mesh: &'a PrivateMesh,
        args: &'a FloodArgs,
        seed: u64,
    ) -> Result<Self, Failure> {
        let (servers, database) = start_filled(mesh).await?;
        let edges = mesh.start_services(&servers, &Layout::default()).await?;
        let files = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
        let wanted = args.play.either(ATTACKERS, ATTACKERS_SHORT);
        // The phase with idle connections has twice as many.
        let attacker_count = wanted.min(files.saturating_sub(OTHER_FILES) / 2).max(1);
        if attacker_count < wanted {
            print_line(&format!("only {files} files may be open: {attacker_count} attackers of a kind"));
        }
        let edge = edges.cached;
        Ok(Self { mesh, play: &args.play, servers, edge, rate: args.rate, attacker_count, database, seed })
    }

    /// Starts the load at an edge and measures it without an attack.
    pub(super) async fn load(&self, edge: SocketAddr) -> Result<MeasuredLoad, Failure> {
        let mix = ReadRequests::find(&self.database).await?.mix(edge, edge);
        let load = Load::start(mix, self.rate, self.seed)?;
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
    pub(super) async fn report(&self, name: &str, measured_load: MeasuredLoad) -> Report {
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

    /// Always true: each phase has its own load, and `load` waits until it is served normally.
    #[allow(clippy::unused_async)] // the trait's method is async
    pub(super) async fn becomes_normal(&self) -> bool {
        true
    }
}

fn p99(samples: &[Sample]) -> Duration {
    quantile(samples.iter().map(|sample| sample.took).collect(), 0.99)
}
