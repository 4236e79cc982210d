//! Phases "kill", "freeze", "rolling", "postgres" and "nats": a replica is killed, frozen or replaced, or a server
//! fails and returns. When a replica fails, clients may see a slow second, but no failure. Without a server the
//! edge must first show cached answers, then refuse with `Retry-After`, and serve fully after the return.

use std::time::Duration;

use mesh::{failure::Failure, processes::POSTGRES};
use mesh_launcher::control::Request;
use rand::{Rng as _, rngs::SmallRng};
use tokio::time::{interval, sleep, sleep_until};

use super::{Fixture, REPLICAS, Report};
use crate::rig::{
    clients::{
        connection::Connection,
        samples::{Sample, normal_after},
    },
    engine::PhasedDrill as _,
    faults::schedule::{BUS, Fault, Target},
    report::in_ms,
};

/// The service whose replica fails.
const SERVICE: &str = REPLICAS[0].0;
/// Greatest p99 of reads in the worst second.
const P99: Duration = Duration::from_millis(1500);
/// Length of a freeze.
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
pub(super) async fn kill(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let from = fixture.load.now();
    fixture.inject(Fault::Kill(any_replica(random))).await?;
    let ready_after = fixture.load.now() - from;
    let mut report = missed(fixture, "kill query", from).await;
    report.notes.push(format!("its successor was ready after {}", in_ms(ready_after)));
    Ok(report)
}

/// Freezes and wakes one replica.
pub(super) async fn freeze(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let (from, before) = (fixture.load.now(), fixture.mesh.pids(SERVICE));
    fixture.inject(Fault::Freeze(any_replica(random), fixture.play.either(FROZEN, FROZEN / 2))).await?;
    let mut report = missed(fixture, "freeze query", from).await;
    report.bar("the frozen replica lives on", fixture.mesh.pids(SERVICE) == before);
    Ok(report)
}

fn any_replica(random: &mut SmallRng) -> Target {
    Target { name: SERVICE, replica: random.random_range(0..REPLICAS[0].1) }
}

async fn missed(fixture: &Fixture<'_>, name: &str, from: Duration) -> Report {
    fixture.sleep_scaled(AFTER).await;
    let (samples, mut report) = fixture.load.report(name, from).await;
    report.figures.normal_after = Some(normal_after(&samples, from, fixture.play.bound(SLOW)));
    report.none_fails();
    report.bar_at_most("p99 in the worst second", report.figures.worst_p99, fixture.play.bound(P99));
    report
}

/// Replaces the replicas of each service in turn, with a second edge meanwhile.
pub(super) async fn rolling(fixture: &Fixture<'_>) -> Result<Vec<Report>, Failure> {
    let mut reports = vec![restart(fixture, "query").await?, restart(fixture, "node-info").await?];
    let scale = |replicas| Request::Scale { name: "edge".to_owned(), replicas };
    fixture.mesh.order(scale(2)).await?;
    let normal = fixture.becomes_normal().await;
    let mut report = restart(fixture, "edge").await?;
    report.bar("two edges serve as one does", normal);
    let from = fixture.load.now();
    fixture.mesh.order(scale(1)).await?;
    fixture.sleep_scaled(AFTER / 2).await;
    let (_, fewer) = fixture.load.report("fewer edges", from).await;
    report.notes.push(format!(
        "when one of the two left: {} of {} reads failed, {} were asked again",
        fewer.figures.requests - fewer.figures.fine,
        fewer.figures.requests,
        fewer.figures.again
    ));
    reports.push(report);
    Ok(reports)
}

async fn restart(fixture: &Fixture<'_>, name: &str) -> Result<Report, Failure> {
    let from = fixture.load.now();
    let (new, all_new) = fixture.mesh.restart(name).await?;
    let took = fixture.load.now() - from;
    fixture.sleep_scaled(AFTER / 2).await;
    let (samples, mut report) = fixture.load.report(&format!("restart {name}"), from).await;
    report.figures.normal_after = Some(normal_after(&samples, from, fixture.play.bound(SLOW)));
    report.none_fails();
    report.bar(format!("all {new} replicas are new"), all_new);
    report.notes.push(format!("the restart took {}", in_ms(took)));
    Ok(report)
}

/// Stops and starts PostgreSQL.
pub(super) async fn postgres(fixture: &Fixture<'_>) -> Result<Report, Failure> {
    let before = fixture.mesh.service_pids();
    if refused_hot(fixture).await > 0 {
        return Err(Failure::failed("hot reads are refused although the database is there"));
    }
    let from = fixture.load.now();
    fixture.mesh.stop_all(POSTGRES).await?;
    let down = fixture.load.now();
    let (mut asked, mut refused, mut pace) = (0, 0, interval(BLUR));
    let surely = AGE_AWAY - AGE - BLUR;
    while fixture.load.now() < from + surely {
        asked += fixture.hot.len();
        refused += refused_hot(fixture).await;
        pace.tick().await;
    }
    sleep_until(fixture.load.moment(down + AWAY)).await;
    let ordered = fixture.load.now();
    let (started, back) = tokio::join!(fixture.mesh.start_all(POSTGRES), async {
        fixture.servers.database_is_back().await.map(|()| fixture.load.now())
    });
    started?;
    let back = back?;
    let (samples, mut report) = came_back(fixture, "postgres away", from, &before, back).await;
    report.bar(format!("hot reads refused within {surely:?}: {refused} of {asked}, at most 0"), refused == 0);
    let old =
        |sample: &&Sample| sample.is_fine() && sample.due > down + AGE_AWAY + BLUR && sample.due < ordered;
    let old = samples.iter().filter(old).count();
    report.bar(format!("answers older than {AGE_AWAY:?}: {old}, at most 0"), old == 0);
    report.notes.push(format!(
        "the stop took {}; it took connections {} after the start command, service was full {} after the command",
        in_ms(down - from),
        in_ms(back - ordered),
        in_ms(normal_after(&samples, ordered, SLOW_AFTER_OUTAGE)),
    ));
    Ok(report)
}

/// Kills the bus; the supervisor restarts it.
pub(super) async fn nats(fixture: &Fixture<'_>) -> Result<Report, Failure> {
    let (from, before) = (fixture.load.now(), fixture.mesh.service_pids());
    fixture.inject(Fault::Kill(BUS)).await?;
    let back = fixture.load.now();
    let (_, mut report) = came_back(fixture, "nats killed", from, &before, back).await;
    report.notes.push(format!("it took connections {} after the kill", in_ms(back - from)));
    Ok(report)
}

/// Requests every hot path once and counts refusals. Uses a new connection each time: on a connection that
/// has seen a newer block, the edge does not show an older answer.
async fn refused_hot(fixture: &Fixture<'_>) -> usize {
    let mut refused = 0;
    for path in &fixture.hot {
        let asked = async { Connection::open(fixture.edges.cached).await?.get(path).await };
        refused += usize::from(!asked.await.is_ok_and(|answer| answer.raw.status == 200));
    }
    refused
}

/// Measures the load after a server's return, and adds the bars of an outage.
async fn came_back(
    fixture: &Fixture<'_>,
    name: &str,
    from: Duration,
    before: &[u32],
    back: Duration,
) -> (Vec<Sample>, Report) {
    sleep(fixture.play.bound(BACK_WITHIN) + AFTER_OUTAGE).await;
    let (samples, mut report) = fixture.load.report(name, from).await;
    report.none_but_200_and_503();
    let refusals = samples.iter().filter(|sample| !sample.is_fine());
    let slowest = refusals.map(|sample| sample.took).max().unwrap_or_default();
    report.bar_at_most("the slowest refusal", slowest, fixture.play.bound(REFUSED_WITHIN));
    let after = normal_after(&samples, back, fixture.play.bound(SLOW_AFTER_OUTAGE));
    report.figures.normal_after = Some(after);
    report.bar_at_most("full service after the return", after, fixture.play.bound(BACK_WITHIN));
    report.bar("no service was restarted", fixture.mesh.service_pids() == before);
    (samples, report)
}
