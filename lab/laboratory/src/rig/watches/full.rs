//! An edge at its limit of watches: the next watch is rejected, and accepted once another one is closed.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use mesh::failure::{Failure, cannot};
use mesh_testbed::{
    http1::{Connection, RawAnswer},
    poll,
};
use tokio::time::sleep;

use super::{
    SETTLE, SHORT_ROWS, World,
    edge::EdgeState,
    figures::{Delays, Figures, Report},
    judge,
};
use crate::{
    rig::watching::watchers::{Over, Watch, Watchers},
    watches::{connect, watch_request},
};

const EDGE: &str = "edge-full";
/// The edge's limit: its default, and that of the short form.
const WATCHES: usize = 20_000;
const WATCHES_SHORT: usize = 60;
/// Watches over HTTP/1.1; the others are over HTTP/2, since an edge takes fewer connections than watches.
const OVER_HTTP1: usize = 500;
const OVER_HTTP1_SHORT: usize = 20;
/// Watches on one connection of HTTP/2.
const ON_A_CONNECTION: usize = 100;
const ON_A_CONNECTION_SHORT: usize = 20;
/// Most memory of the edge for a watch with its share of a connection, KiB.
const KIB_EACH: f64 = 32.0;
/// Longest time until the edge accepts a new watch after one is closed.
const CLOSED_WITHIN: Duration = Duration::from_secs(5);

/// Runs the phase.
pub(super) async fn run(world: &World<'_>) -> Result<Report, Failure> {
    let play = &world.play;
    let count = play.either(WATCHES, WATCHES_SHORT);
    let over_http1 = play.either(OVER_HTTP1, OVER_HTTP1_SHORT);
    let limit = play.run.short.then(|| ("MESH_EDGE_WATCHES".to_owned(), count.to_string()));
    let edge = world.phase_edge(EDGE, limit.into_iter().collect()).await?;
    let paths = world.changing_paths(SHORT_ROWS).await?;
    let blocks = world.blocks().await?;
    let empty = EdgeState::read(world.mesh, EDGE).await?;
    let over_http2 = (count - over_http1, play.either(ON_A_CONNECTION, ON_A_CONNECTION_SHORT));
    let mut watchers =
        Watchers::crowd(&[edge], Watch::each(&paths, count, Over::EventStream), over_http2).await?;
    let full = EdgeState::with_watches(world.mesh, EDGE, count, CLOSED_WITHIN).await?;
    let (refused, _) = ask(edge, &paths[0], count).await?;

    sleep(world.warm_up()).await;
    let (from, before) = (Instant::now(), EdgeState::read(world.mesh, EDGE).await?);
    sleep(world.steady()).await;
    let (to, after) = (Instant::now(), EdgeState::read(world.mesh, EDGE).await?);
    sleep(SETTLE).await;
    let received = watchers.received_since(from);

    watchers.close_one();
    let taken = poll(play.bound(CLOSED_WITHIN), async || match ask(edge, &paths[0], count).await {
        Ok((answer, connection)) if answer.status == 200 => Ok(connection),
        Ok((answer, _)) => Err(format!("{} after another one was closed", answer.status)),
        Err(failure) => Err(failure.to_string()),
    })
    .await;
    // While that watch is open, the edge is full again.
    let (refused_again, _) = ask(edge, &paths[0], count).await?;

    let mut report = Report::new(
        "full",
        Figures {
            watches: full.watches,
            received: Delays::of(&blocks, from, to, &received, count),
            kib_each: after.kib_each(&empty, count),
            cpu_ms: after.cpu_ms_a_second(&before),
        },
    );
    refusal_holds(&mut report, &format!("watch {} is rejected", count + 1), &refused);
    report.bar("a new watch is accepted when one is closed", taken.is_ok());
    refusal_holds(&mut report, "the next one is rejected again", &refused_again);
    judge(&watchers, &mut report);
    report.messages.extend(taken.as_ref().err().cloned());
    world.none_is_missed(&mut report);
    if !play.run.short {
        let kib = report.figures.kib_each;
        report.bar(format!("memory of a watch: {kib:.1} KiB, at most {KIB_EACH} KiB"), kib <= KIB_EACH);
    }
    drop((watchers, taken));
    world.mesh.stop_all(EDGE).await?;
    Ok(report)
}

/// Requests one more watch; returns the response, whose body is empty, and its connection.
async fn ask(edge: SocketAddr, path: &str, number: usize) -> Result<(RawAnswer, Connection), Failure> {
    let asked = async {
        let mut connection = Connection::over(connect(edge, number, None).await?);
        connection.send(watch_request(path, None).as_bytes()).await?;
        let (answer, _) = connection.head().await?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        Ok::<_, std::io::Error>((answer, connection))
    };
    asked.await.map_err(|error| cannot("ask for one more watch", &error))
}

fn refusal_holds(report: &mut Report, what: &str, answer: &RawAnswer) {
    let retry_after = answer.header("retry-after");
    let answered = format!("{}, Retry-After {}", answer.status, retry_after.unwrap_or("missing"));
    report.bar(format!("{what}: {answered}"), answer.status == 429 && retry_after.is_some());
}
