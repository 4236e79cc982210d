//! `mesh rig flood`: attackers against an edge that serves regular reads.
//!
//! In each phase the load runs undisturbed for a while, and then together with attackers from other addresses
//! of the loopback network. The load must not fail or become slow; the edge must close each attacker's
//! connection in time.

pub(super) mod attackers;
mod watches;

use std::time::Duration;

use mesh::failure::Failure;
use rustix::process::{Resource, getrlimit};
use tokio::time::sleep;

use self::attackers::{Attack, Attackers, STALLED, UNREAD_LONGER};
use super::{
    args::{POLITE_RATE, SLACK},
    clients::{load::Load, samples::latency},
    engine::{Drill, Phase, Play, Playing, phase},
    report::{Report, in_ms},
    world::{Setup, World},
};
use crate::watches::Blocks;

const ATTACKERS: [usize; 2] = [5000, 200];
/// Open files that this process needs in addition to those of its attackers.
const OTHER_FILES: usize = 1000;
/// How long the load is measured before an attack.
const STEADY: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(2)];
/// Greatest p99 of the load during an attack, as a multiple of the p99 before.
const TIMES: u32 = 2;
/// A p99 below this is always accepted: it is dominated by the scheduler. Longer in the short form, which
/// runs debug builds.
const NO_TIME: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(100)];
/// How long the load may take until all its requests succeed.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) const DRILL: Drill = Drill {
    name: "flood",
    about: "Attacks an edge under reads; reads must not fail or become slow",
    options: &[SLACK, POLITE_RATE],
    play: Play::Phases(Playing {
        world: |options| {
            let env =
                vec![("MESH_EDGE_HEAD_TIMEOUT_MS", options.play().either(HEAD).as_millis().to_string())];
            Setup { fill: &[watches::FILL], has_rows: true, env, ..Setup::default() }
        },
        setup: |world| {
            let (rate, attackers) = (world.options.number("rate"), world.attackers());
            format!("{rate} requests a second beside {attackers} attackers")
        },
        // Each phase has its own load and blocks, and waits until it is served normally.
        becomes_normal: |_| Box::pin(std::future::ready(true)),
        timeout: Duration::from_secs(300),
        phases: PHASES,
    }),
};

/// The load of a phase, with its p99 before the attack.
struct MeasuredLoad {
    load: Load,
    steady: Duration,
    from: Duration,
    _blocks: Blocks,
}

impl World<'_> {
    /// Number of concurrent attackers: fewer where fewer files may be open. The phase with idle connections
    /// has twice as many.
    fn attackers(&self) -> usize {
        let files = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
        let wanted = self.play.either(ATTACKERS);
        wanted.min(files.saturating_sub(OTHER_FILES) / 2).max(1)
    }

    /// Starts the load and an empty block a second, and measures without an attack.
    async fn measured_load(&self) -> Result<MeasuredLoad, Failure> {
        let (edge, blocks) = (self.edges.cached, Blocks::write(&self.servers, None));
        let mix = self.read_requests.clone().mix(edge, edge);
        let load = Load::start(mix, self.options.number("rate"), self.seed)?;
        // Waits until connections are open and caches are filled.
        if !load.becomes_normal(Duration::MAX, TIMEOUT).await {
            return Err(Failure::failed("the load is not answered even without an attack"));
        }
        let from = load.now();
        sleep(self.play.either(STEADY)).await;
        let to = load.now();
        load.until_finished(to).await;
        let samples = load.samples(from, to);
        Ok(MeasuredLoad { steady: latency(&samples, 0.99), from: load.now(), load, _blocks: blocks })
    }

    /// Ends the load and reports it, with the bars that are common to all attacks.
    async fn load_report(&self, name: &str, measured_load: MeasuredLoad) -> Report {
        let MeasuredLoad { load, steady, from, _blocks } = measured_load;
        let (samples, figures, mut report) = load.report(name, from).await;
        figures.none_fails(&mut report);
        let no_time = self.play.either(NO_TIME);
        let bound = self.play.bound((steady * TIMES).max(no_time));
        report.bar_at_most(
            &format!("p99 of the others, {} without the attack", in_ms(steady)),
            latency(&samples, 0.99),
            bound,
        );
        report
    }
}

/// The edge's time limits of a head, of a body, and of an idle connection (contract section 7). In the short form
/// edges are configured with a shorter one for heads.
const HEAD: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(3)];
const BODY: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_secs(60);
/// A connection may be closed this much after its limit.
const LATER: Duration = Duration::from_secs(3);
/// Time over which attackers connect: the attack is on the number of connections, not on the speed of
/// connecting. Those that stay until their limit connect more slowly, because their connections are then
/// closed at the same rate, and closing costs this machine processor time at both ends.
const RAMP_UP: Duration = Duration::from_secs(2);
const SLOW_RAMP_UP: Duration = Duration::from_secs(10);
/// Length of an attack whose end is not awaited.
const SHORT_LENGTH: Duration = Duration::from_secs(3);

const PHASES: &[Phase] = &[
    phase("head", "Connections that send half a head", |world, _| {
        Box::pin(closed(world, "half a head", Attack::Head, 1, world.play.either(HEAD)))
    }),
    phase("body", "Bodies sent at one byte a second", |world, _| {
        Box::pin(closed(world, "slow bodies", Attack::Body, 1, BODY))
    }),
    // A client that does not read sees the close only later.
    phase("unread", "Clients that do not read a long answer", |world, _| {
        Box::pin(closed(world, "answers unread", Attack::Unread, 1, STALLED + UNREAD_LONGER))
    }),
    phase("window", "HTTP/2 clients with a flow-control window of zero", |world, _| {
        Box::pin(closed(world, "no window", Attack::Window, 1, STALLED))
    }),
    phase("watch", "Watches of long answers that are not read", |world, _| {
        Box::pin(watches::unread_watches(world))
    }),
    phase("idle", "Idle connections", |world, _| {
        Box::pin(closed(world, "idle connections", Attack::Idle, 2, IDLE))
    }),
];

/// Attackers connect once, and the edge must close them in time. The short form awaits the limit of heads only.
async fn closed(
    world: &World<'_>,
    name: &str,
    kind: Attack,
    multiple: usize,
    within: Duration,
) -> Result<Report, Failure> {
    let measured_load = world.measured_load().await?;
    let count = world.attackers() * multiple;
    let is_awaited = !world.play.short || kind == Attack::Head;
    let ramp_up = if is_awaited && kind != Attack::Head { SLOW_RAMP_UP } else { RAMP_UP };
    let length = if is_awaited { within + world.play.bound(LATER) } else { SHORT_LENGTH };
    let ended = Attackers::send(kind, count, world.edges.cached, ramp_up).end(ramp_up + length).await;
    let mut report = world.load_report(name, measured_load).await;
    report.bar_none("attackers that found no place", ended.refused);
    if is_awaited {
        report.bar_none("attackers that stayed", ended.left);
        report.bar_at_most("the last one is closed", ended.longest(), within + world.play.bound(LATER));
    }
    report.notes.push(ended.summary());
    Ok(report)
}
