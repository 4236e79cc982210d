//! Phases "postgres" and "nats": a server fails and returns. The edge must first show cached answers, then
//! refuse with `Retry-After`, and serve fully after the return.

use std::time::Duration;

use mesh::{
    failure::Failure,
    processes::{NATS, POSTGRES},
};
use rand::rngs::SmallRng;
use tokio::time::sleep;

use crate::rig::{
    clients::{
        connection::Connection,
        samples::{Sample, normal_after},
    },
    reads::{Report, fixture::Fixture},
    report::in_ms,
};

/// Length of the database's outage: longer than cached answers are shown.
const AWAY: Duration = Duration::from_secs(12);
/// Greatest age of a cached answer during an outage of the database.
const KEPT: Duration = Duration::from_secs(10);
/// Greatest age of a cached answer before the outage.
const FRESH: Duration = Duration::from_secs(1);
/// Uncertainty of both ages.
const BLUR: Duration = Duration::from_millis(500);
/// Longest time until a refusal.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);
/// Longest time from the server's return until all reads succeed.
const BACK_WITHIN: Duration = Duration::from_secs(2);
/// A read that takes longer counts as slow.
const SLOW: Duration = Duration::from_secs(1);
/// How long the load is measured after that time.
const AFTER: Duration = Duration::from_millis(500);

/// Stops and starts PostgreSQL.
pub(super) async fn postgres(fixture: &Fixture<'_>) -> Result<Vec<Report>, Failure> {
    let before = fixture.mesh.service_pids();
    if refused_hot(fixture).await > 0 {
        return Err(Failure::failed("hot reads are refused although the database is there"));
    }
    let from = fixture.load.now();
    fixture.mesh.stop_all(POSTGRES).await?;
    let down = fixture.load.now();
    let (mut asked, mut refused) = (0, 0);
    while fixture.load.now() < from + KEPT - FRESH - BLUR {
        asked += fixture.hot.len();
        refused += refused_hot(fixture).await;
        sleep(BLUR).await;
    }
    sleep((down + AWAY).saturating_sub(fixture.load.now())).await;
    let ordered = fixture.load.now();
    let (started, back) = tokio::join!(fixture.mesh.start_all(POSTGRES), async {
        fixture.servers.database_is_back().await.map(|()| fixture.load.now())
    });
    started?;
    let back = back?;
    sleep(fixture.play.bound(BACK_WITHIN) + AFTER).await;
    let (samples, mut report) = fixture.report("postgres away", from).await;
    came_back(fixture, &mut report, &samples, &before, back);
    let surely = KEPT - FRESH - BLUR;
    report.bar(format!("hot reads refused within {surely:?}: {refused} of {asked}, at most 0"), refused == 0);
    let old = |sample: &&Sample| sample.is_fine() && sample.due > down + KEPT + BLUR && sample.due < ordered;
    let old = samples.iter().filter(old).count();
    report.bar(format!("answers older than {KEPT:?}: {old}, at most 0"), old == 0);
    report.notes.push(format!(
        "the stop took {}; it took connections {} after the start command, service was full {} after the command",
        in_ms(down - from),
        in_ms(back - ordered),
        in_ms(normal_after(&samples, ordered, SLOW)),
    ));
    Ok(vec![report])
}

/// Kills the bus; the supervisor restarts it.
pub(super) async fn nats(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Vec<Report>, Failure> {
    let before = fixture.mesh.service_pids();
    let from = fixture.load.now();
    fixture.mesh.kill_one(NATS, random).await?;
    fixture.servers.bus_is_back().await?;
    let back = fixture.load.now();
    sleep(fixture.play.bound(BACK_WITHIN) + AFTER).await;
    let (samples, mut report) = fixture.report("nats killed", from).await;
    came_back(fixture, &mut report, &samples, &before, back);
    report.notes.push(format!("it took connections {} after the kill", in_ms(back - from)));
    Ok(vec![report])
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

fn came_back(fixture: &Fixture<'_>, report: &mut Report, samples: &[Sample], before: &[u32], back: Duration) {
    report.none_but_200_and_503();
    let refusals = samples.iter().filter(|sample| !sample.is_fine());
    let slowest = refusals.map(|sample| sample.took).max().unwrap_or_default();
    report.bar_at_most("the slowest refusal", slowest, fixture.play.bound(REFUSED_WITHIN));
    let after = normal_after(samples, back, fixture.play.bound(SLOW));
    report.figures.normal_after = Some(after);
    report.bar_at_most("full service after the return", after, fixture.play.bound(BACK_WITHIN));
    report.bar("no service was restarted", fixture.mesh.service_pids() == before);
}
