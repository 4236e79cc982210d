//! The phases of the drill.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use mesh::failure::{Failure, cannot};
use mesh_launcher::services::GRACE_S;
use mesh_testbed::poll;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    time::{interval, sleep},
};

use super::{
    Delays, EdgeState, LONG_ROWS, SETTLE, SHORT_ROWS, STEADY, WARM_UP, World, events_of_a_block, figures,
    judge,
};
use crate::{
    rig::{
        clients::samples::quantile,
        report::{Report, in_ms},
        watching::{
            judge::Absence,
            record::WatchRecord,
            watchers::{OPEN_WITHIN, Over, Watch, Watchers},
        },
    },
    watches::{OPENED_AT_ONCE, connect, watch_request},
};

/// The edge that shuts down, and the other one.
const ENDING: &str = "edge-ending";
const OTHER: &str = "edge-other";
const WATCHES: [usize; 2] = [5000, 200];
/// Longest time from the end of a stream to the first bytes of its client's next one.
const BACK_WITHIN: Duration = Duration::from_secs(5);
/// How long the drill waits for clients after the end of the edge.
const WAIT: Duration = Duration::from_secs(30);

/// An edge shuts down with thousands of watchers: all of them resume at the other edge.
pub(super) async fn drain(world: &World<'_>) -> Result<Report, Failure> {
    let play = &world.play;
    let count = play.either(WATCHES);
    // Includes answers that stay the same for a few blocks.
    let paths = world.paths(SHORT_ROWS).await?;
    let edges = [world.phase_edge(ENDING).await?, world.phase_edge(OTHER).await?];
    let blocks = world.blocks().await?;
    let watchers = Watchers::crowd(&edges, Watch::each(&paths, count, Over::EventStream), (0, 1)).await?;
    EdgeState::with_watches(world.mesh, ENDING, count, WAIT).await?;
    sleep(play.either(STEADY) / 2).await;

    let begun = Instant::now();
    world.mesh.stop_all(ENDING).await?;
    let stopped = begun.elapsed();
    let are_back = async || {
        let resumed = watchers.look(|record| record.absences().len());
        (resumed == count).then_some(()).ok_or(())
    };
    // The bars report missing clients.
    let _ = poll(WAIT, are_back).await;
    let back = watchers.look(|record| record.absences().iter().map(Absence::length).collect::<Vec<_>>());

    let from = Instant::now();
    sleep(play.either(STEADY) / 2).await;
    let (to, after) = (Instant::now(), EdgeState::read(world.mesh, OTHER).await?);
    sleep(SETTLE).await;
    let received = Delays::of(&blocks, from, to, &watchers.received_since(from), events_of_a_block(count));
    let mut report = Report::new("drain", figures(after.watches, &received));
    let ended = watchers.look(WatchRecord::ended);
    report.bar(format!("streams that ended in order: {ended} of {count}"), ended == count);
    report.bar(
        format!("watchers that resumed at the other edge: {} of {count}", back.len()),
        back.len() == count && after.watches == count,
    );
    let longest = back.iter().max().copied().unwrap_or_default();
    report.bar_at_most("the last one has resumed", longest, play.bound(BACK_WITHIN));
    report.bar_at_most("the edge has ended", stopped, Duration::from_secs(GRACE_S));
    judge(&watchers, &mut report);
    world.none_is_missed(&mut report, received.missed);
    report.notes.push(format!("half resumed within {}", in_ms(quantile(back, 0.5))));
    drop(watchers);
    world.mesh.stop_all(OTHER).await?;
    Ok(report)
}

const EDGE: &str = "edge-stalled";
/// Watchers that read, and that do not.
const READERS: [usize; 2] = [100, 20];
const STALLED: [usize; 2] = [1000, 50];
/// Receive buffer of a watcher that does not read.
const NARROW_BYTES: u32 = 4096;
/// The edge closes a watch whose client reads nothing for this long (contract W3).
const STALL: Duration = Duration::from_secs(120);
/// Time until the kernel's buffers are full and the edge has to wait: a few events, one for each block.
const LATER: Duration = Duration::from_secs(10);
/// Greatest memory of the edge for a watch without its event: the connection and the buffers of HTTP.
const CONNECTION_BYTES: u64 = 32 << 10;
/// Greatest p99 of the others, as a multiple of the one before; always accepted up to the first of these times, and
/// never beyond the second.
const P99_TIMES: u32 = 2;
const NO_TIME: Duration = Duration::from_millis(100);
const TOLD_WITHIN: Duration = Duration::from_millis(250);
/// How often the edge's metrics are read.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

/// Watchers that never read, together with watchers that do.
pub(super) async fn stalled(world: &World<'_>) -> Result<Report, Failure> {
    let play = &world.play;
    let (count, readers) = (play.either(STALLED), play.either(READERS));
    let mut paths = world.changing_paths(LONG_ROWS).await?;
    // All clients watch the same paths, so that the stalled ones add no cached answer.
    paths.truncate(readers);
    let edge = world.phase_edge(EDGE).await?;
    let blocks = world.blocks().await?;
    let watchers = Watchers::crowd(&[edge], Watch::each(&paths, readers, Over::EventStream), (0, 1)).await?;
    sleep(play.either(WARM_UP)).await;
    let steady = {
        let from = Instant::now();
        sleep(play.either(STEADY)).await;
        let to = Instant::now();
        sleep(SETTLE).await;
        Delays::of(&blocks, from, to, &watchers.received_since(from), readers)
    };

    let before = EdgeState::read(world.mesh, EDGE).await?;
    let begun = Instant::now();
    let stalled = open_stalled(edge, &paths, readers, count).await?;
    let open = EdgeState::with_watches(world.mesh, EDGE, readers + count, OPEN_WITHIN).await?;
    let opening = open.at - begun;
    let length = play.either([opening + STALL + LATER, SETTLE]);
    let states = states_until(world, begun + length, count).await?;
    let to = Instant::now();
    sleep(SETTLE).await;
    let received = Delays::of(&blocks, begun, to, &watchers.received_since(begun), readers);

    let last = *states.last().unwrap_or(&open);
    let greatest = states.iter().max_by_key(|state| state.memory).copied().unwrap_or(open);
    let mut report = Report::new("stalled", figures(open.watches, &received));
    let event = watchers.look(|record| record.longest_event) as u64;
    let bound = count as u64 * (event + CONNECTION_BYTES);
    let growth = greatest.memory.saturating_sub(before.memory);
    report.bar(
        format!(
            "memory of stalled watchers: {} KiB, at most {} KiB ({count} answers of {event} bytes and 32 KiB)",
            growth >> 10,
            bound >> 10
        ),
        growth <= bound,
    );
    judge(&watchers, &mut report);
    let ended = watchers.look(WatchRecord::ended);
    report.bar_none("reading watchers whose stream ended", ended);
    world.none_is_missed(&mut report, received.missed);
    let slowest = play.bound((steady.p99 * P99_TIMES).clamp(NO_TIME, TOLD_WITHIN));
    let what = format!("p99 of reading watchers, {} before", in_ms(steady.p99));
    report.bar_at_most(&what, received.p99, slowest);
    match play.short {
        true => report.bar("no watch is closed yet", last.cut == 0),
        false => all_are_cut(&mut report, &states, begun, opening, count),
    }
    report.notes.push(format!(
        "memory: {} MiB before, at most {} MiB, {} MiB at the end",
        before.memory >> 20,
        greatest.memory >> 20,
        last.memory >> 20
    ));
    drop((watchers, stalled));
    world.mesh.stop_all(EDGE).await?;
    Ok(report)
}

/// Opens watches that are never read.
async fn open_stalled(
    edge: SocketAddr,
    paths: &[String],
    first: usize,
    count: usize,
) -> Result<Vec<TcpStream>, Failure> {
    let opening = (first..first + count).map(async |number| {
        let mut stream = connect(edge, number, Some(NARROW_BYTES)).await?;
        stream.write_all(watch_request(&paths[number % paths.len()], None).as_bytes()).await?;
        Ok::<_, std::io::Error>(stream)
    });
    let opened = stream::iter(opening).buffer_unordered(OPENED_AT_ONCE).try_collect().await;
    opened.map_err(|error| cannot("open a watch", &error))
}

/// The states of the edge until all watches are closed, or until this time.
async fn states_until(world: &World<'_>, end: Instant, count: usize) -> Result<Vec<EdgeState>, Failure> {
    let (mut states, mut ticks) = (Vec::new(), interval(ASK_INTERVAL));
    while Instant::now() < end && states.last().is_none_or(|state: &EdgeState| state.cut < count) {
        ticks.tick().await;
        states.push(EdgeState::read(world.mesh, EDGE).await?);
    }
    Ok(states)
}

/// Adds the bars on when the stalled watches are closed; they were opened in sequence.
fn all_are_cut(report: &mut Report, states: &[EdgeState], begun: Instant, opening: Duration, count: usize) {
    let cut = states.last().map_or(0, |state| state.cut);
    report.bar(format!("watches closed and counted: {cut} of {count}"), cut == count);
    let at = |least: usize| states.iter().find(|state| state.cut >= least).map(|state| state.at - begun);
    let (first, last) = (at(1).unwrap_or_default(), at(count).unwrap_or(Duration::MAX));
    report.bar(
        format!("the first one is closed after {}, at least {}", in_ms(first), in_ms(STALL)),
        first >= STALL,
    );
    report.bar_at_most("the last one is closed", last, opening + STALL + LATER);
    report.notes.push(format!("all were open after {}", in_ms(opening)));
}
