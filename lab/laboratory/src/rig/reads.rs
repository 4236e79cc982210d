//! `mesh rig reads`: reads under failing replicas and servers.
//!
//! A private mesh with two replicas of the services under test, filled tables, and a block every second serves a
//! load that sends a fixed number of reads a second independently of earlier answers; every read is measured.
//!
//! Phases "kill", "freeze", "postgres" and "nats": a replica is killed or frozen, or a server fails and
//! returns. When a replica fails, clients may see a slow second, but no failure. Without a server the edge
//! must first show cached answers, then refuse with `Retry-After`, and serve fully after the return.

use std::time::Duration;

use mesh::{failure::Failure, processes::POSTGRES};
use rand::{Rng as _, rngs::SmallRng};
use tokio::time::{interval, sleep, sleep_until};

use super::{
    args::{READ_RATE, SLACK},
    clients::{
        connection::Connection,
        load::NORMAL_P99,
        samples::{Sample, normal_after},
    },
    engine::{Drill, Phase, Play, Playing, phase},
    faults::schedule::{BUS, Fault, Target},
    report::{Report, in_ms},
    world::{Setup, World},
};

/// Replicas of the services under test.
const REPLICAS: [(&str, u32); 2] = [("query", 2), ("node-info", 2)];
/// How long the service may take to become normal between two phases.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) const DRILL: Drill = Drill {
    name: "reads",
    about: "Kills replicas and servers under reads; reads must continue",
    options: &[SLACK, READ_RATE],
    play: Play::Phases(Playing {
        world: |options| Setup {
            has_rows: true,
            replicas: REPLICAS.to_vec(),
            rate: Some(options.number("rate")),
            ..Setup::default()
        },
        setup: |world| format!("{} requests a second", world.options.number("rate")),
        becomes_normal: |world| Box::pin(world.reads_are_normal()),
        timeout: Duration::from_secs(300),
        phases: PHASES,
    }),
};

pub(super) const PHASES: &[Phase] = &[
    phase("kill", "A replica is killed", |world, random| Box::pin(kill(world, random))),
    phase("freeze", "A replica is frozen and woken", |world, random| Box::pin(freeze(world, random))),
    phase("postgres", "The database is stopped and started", |world, _| Box::pin(postgres(world))),
    phase("nats", "The bus is killed and restarted", |world, _| Box::pin(nats(world))),
];

impl World<'_> {
    /// Waits until reads are fast and succeed; returns whether they do.
    async fn reads_are_normal(&self) -> bool {
        self.load().becomes_normal(self.play.bound(NORMAL_P99), TIMEOUT).await
    }
}

/// The service whose replica fails.
const SERVICE: &str = REPLICAS[0].0;
/// Greatest p99 of reads in the worst second.
const P99: Duration = Duration::from_millis(1500);
const FROZEN: Duration = Duration::from_secs(5);
/// How long the load is measured after the fault of a replica.
const AFTER: Duration = Duration::from_secs(3);
/// A read that takes longer counts as slow.
const SLOW: Duration = Duration::from_millis(100);

/// Length of the database's outage: longer than cached answers are shown.
const AWAY: Duration = Duration::from_secs(12);
/// Greatest age of a cached answer during an outage of the database, and before.
const AGE_AWAY: Duration = Duration::from_secs(10);
const AGE: Duration = Duration::from_secs(1);
/// Uncertainty of both ages.
const BLUR: Duration = Duration::from_millis(500);
/// Longest time until a refusal.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);
/// Longest time from the server's return until all reads succeed.
const BACK_WITHIN: Duration = Duration::from_secs(2);
/// A read that takes longer after that counts as slow.
const SLOW_AFTER_OUTAGE: Duration = Duration::from_secs(1);
/// How long the load is measured after that time.
const AFTER_OUTAGE: Duration = Duration::from_millis(500);

/// Kills one replica; the supervisor restarts it.
async fn kill(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let from = world.load().now();
    world.inject(Fault::Kill(any_replica(random))).await?;
    let ready_after = world.load().now() - from;
    let mut report = missed(world, "kill query", from).await;
    report.notes.push(format!("its successor was ready after {}", in_ms(ready_after)));
    Ok(report)
}

async fn freeze(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let (from, before) = (world.load().now(), world.mesh.pids(SERVICE));
    world.inject(Fault::Freeze(any_replica(random), world.play.either([FROZEN, FROZEN / 2]))).await?;
    let mut report = missed(world, "freeze query", from).await;
    report.bar("the frozen replica lives on", world.mesh.pids(SERVICE) == before);
    Ok(report)
}

fn any_replica(random: &mut SmallRng) -> Target {
    Target { name: SERVICE, replica: random.random_range(0..REPLICAS[0].1) }
}

async fn missed(world: &World<'_>, name: &str, from: Duration) -> Report {
    sleep(world.play.either([AFTER, AFTER / 2])).await;
    let (samples, figures, mut report) = world.load().report(name, from).await;
    figures.none_fails(&mut report);
    report.bar_at_most("p99 in the worst second", figures.worst_p99, world.play.bound(P99));
    let after = normal_after(&samples, from, world.play.bound(SLOW));
    report.notes.push(format!("reads were fast again after {}", in_ms(after)));
    report
}

/// Stops and starts PostgreSQL.
async fn postgres(world: &World<'_>) -> Result<Report, Failure> {
    let before = world.mesh.service_pids();
    if refused_hot(world).await > 0 {
        return Err(Failure::failed("hot reads are refused although the database is there"));
    }
    let from = world.load().now();
    world.mesh.stop_all(POSTGRES).await?;
    let down = world.load().now();
    let (mut asked, mut refused, mut pace) = (0, 0, interval(BLUR));
    let blur = world.play.bound(BLUR);
    let surely = AGE_AWAY - AGE - blur;
    while world.load().now() < from + surely {
        asked += world.read_requests.hot().len();
        refused += refused_hot(world).await;
        pace.tick().await;
    }
    sleep_until(world.load().moment(down + AWAY)).await;
    let ordered = world.load().now();
    let (started, back) = tokio::join!(world.mesh.start_all(POSTGRES), async {
        world.servers.database_is_back().await.map(|()| world.load().now())
    });
    started?;
    let back = back?;
    let (samples, mut report) = came_back(world, "postgres away", from, &before, back).await;
    report.bar(format!("hot reads refused within {surely:?}: {refused} of {asked}, at most 0"), refused == 0);
    let old =
        |sample: &&Sample| sample.is_fine() && sample.due > down + AGE_AWAY + blur && sample.due < ordered;
    let old = samples.iter().filter(old).count();
    report.bar_none(&format!("answers older than {AGE_AWAY:?}"), old);
    report.notes.push(format!(
        "the stop took {}; it took connections {} after the start command, service was full {} after the command",
        in_ms(down - from),
        in_ms(back - ordered),
        in_ms(normal_after(&samples, ordered, SLOW_AFTER_OUTAGE)),
    ));
    Ok(report)
}

/// Kills the bus; the supervisor restarts it.
async fn nats(world: &World<'_>) -> Result<Report, Failure> {
    let (from, before) = (world.load().now(), world.mesh.service_pids());
    world.inject(Fault::Kill(BUS)).await?;
    let back = world.load().now();
    let (_, mut report) = came_back(world, "nats killed", from, &before, back).await;
    report.notes.push(format!("it took connections {} after the kill", in_ms(back - from)));
    Ok(report)
}

/// Requests every hot path once and counts refusals. Uses a new connection each time: on a connection that
/// has seen a newer block, the edge does not show an older answer.
async fn refused_hot(world: &World<'_>) -> usize {
    let mut refused = 0;
    for request in world.read_requests.hot() {
        let asked = async { Connection::open(world.edges.cached).await?.get(&request.path).await };
        refused += usize::from(!asked.await.is_ok_and(|answer| answer.raw.status == 200));
    }
    refused
}

/// Measures the load after a server's return, and adds the bars of an outage.
async fn came_back(
    world: &World<'_>,
    name: &str,
    from: Duration,
    before: &[u32],
    back: Duration,
) -> (Vec<Sample>, Report) {
    sleep(world.play.bound(BACK_WITHIN) + AFTER_OUTAGE).await;
    let (samples, figures, mut report) = world.load().report(name, from).await;
    figures.none_but_200_and_503(&mut report);
    let refusals = samples.iter().filter(|sample| !sample.is_fine());
    let slowest = refusals.map(|sample| sample.took).max().unwrap_or_default();
    report.bar_at_most("the slowest refusal", slowest, world.play.bound(REFUSED_WITHIN));
    let after = normal_after(&samples, back, world.play.bound(SLOW_AFTER_OUTAGE));
    report.bar_at_most("full service after the return", after, world.play.bound(BACK_WITHIN));
    report.bar("no service was restarted", world.mesh.service_pids() == before);
    (samples, report)
}
