//! An edge shuts down with thousands of watchers: all of them resume at the other edge.

use std::time::{Duration, Instant};

use mesh::failure::Failure;
use mesh_launcher::services::GRACE_S;
use mesh_testbed::poll;
use tokio::time::sleep;

use super::{
    SETTLE, SHORT_ROWS, World,
    edge::EdgeState,
    events_of_a_block,
    figures::{Delays, Figures, Report},
    judge,
};
use crate::rig::{
    clients::samples::quantile,
    report::in_ms,
    watching::{
        judge::Absence,
        record::WatchRecord,
        watchers::{Over, Watch, Watchers},
    },
};

/// The edge that shuts down, and the other one.
const ENDING: &str = "edge-ending";
const OTHER: &str = "edge-other";
const WATCHES: usize = 5000;
const WATCHES_SHORT: usize = 200;
/// Longest time from the end of a stream to the first bytes of its client's next one.
const BACK_WITHIN: Duration = Duration::from_secs(5);
/// How long the drill waits for clients after the end of the edge.
const WAIT: Duration = Duration::from_secs(30);

/// Runs the phase.
pub(super) async fn run(world: &World<'_>) -> Result<Report, Failure> {
    let play = &world.play;
    let count = play.either(WATCHES, WATCHES_SHORT);
    // Includes answers that stay the same for a few blocks.
    let paths = world.paths(SHORT_ROWS).await?;
    let edges = [world.phase_edge(ENDING, Vec::new()).await?, world.phase_edge(OTHER, Vec::new()).await?];
    let blocks = world.blocks().await?;
    let watchers = Watchers::crowd(&edges, Watch::each(&paths, count, Over::EventStream), (0, 1)).await?;
    EdgeState::with_watches(world.mesh, ENDING, count, WAIT).await?;
    let empty = EdgeState::read(world.mesh, OTHER).await?;
    sleep(play.either(world.steady() / 2, SETTLE)).await;

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

    let (from, before) = (Instant::now(), EdgeState::read(world.mesh, OTHER).await?);
    sleep(world.steady() / 2).await;
    let (to, after) = (Instant::now(), EdgeState::read(world.mesh, OTHER).await?);
    sleep(SETTLE).await;
    let received = Delays::of(&blocks, from, to, &watchers.received_since(from), events_of_a_block(count));
    let (kib_each, cpu_ms) = (after.kib_each(&empty, count), after.cpu_ms_a_second(&before));
    let mut report = Report::new("drain", Figures { watches: after.watches, received, kib_each, cpu_ms });
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
    world.none_is_missed(&mut report);
    report.notes.push(format!("half resumed within {}", in_ms(quantile(back, 0.5))));
    drop(watchers);
    world.mesh.stop_all(OTHER).await?;
    Ok(report)
}
