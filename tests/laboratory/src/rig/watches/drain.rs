//! An edge shuts down with thousands of watchers: all of them resume at the other edge.

use std::time::{Duration, Instant};

use mesh::failure::Failure;
use mesh_launcher::services::GRACE_S;
use mesh_testbed::poll;
use tokio::time::sleep;

use super::{
    Fixture, SETTLE, SHORT_ROWS,
    clients::Clients,
    edge::EdgeState,
    figures::{Delays, Figures, Report},
};
use crate::rig::{clients::samples::quantile, report::in_ms};

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
pub(super) async fn run(fixture: &Fixture<'_>) -> Result<Report, Failure> {
    let play = fixture.play;
    let count = play.either(WATCHES, WATCHES_SHORT);
    // Includes answers that stay the same for a few blocks.
    let paths = fixture.paths(SHORT_ROWS);
    let edges = [fixture.edge(ENDING, Vec::new()).await?, fixture.edge(OTHER, Vec::new()).await?];
    let blocks = fixture.blocks().await?;
    let clients = Clients::open(&edges, &paths, count).await?;
    EdgeState::with_watches(fixture.mesh, ENDING, count, WAIT).await?;
    let empty = EdgeState::read(fixture.mesh, OTHER).await?;
    sleep(play.either(fixture.steady() / 2, SETTLE)).await;

    let begun = Instant::now();
    fixture.mesh.stop_all(ENDING).await?;
    let stopped = begun.elapsed();
    let are_back = async || {
        let (back, is_failed) = clients.look(|seen| (seen.back.len(), !seen.failures.is_empty()));
        if back == count || is_failed { Ok(()) } else { Err(()) }
    };
    // The bars report missing clients.
    let _ = poll(WAIT, are_back).await;
    let back = clients.look(|seen| seen.back.clone());

    let (from, before) = (Instant::now(), EdgeState::read(fixture.mesh, OTHER).await?);
    sleep(fixture.steady() / 2).await;
    let (to, after) = (Instant::now(), EdgeState::read(fixture.mesh, OTHER).await?);
    sleep(SETTLE).await;
    let received =
        Delays::of(&blocks, from, to, &clients.received_since(from), Fixture::events_of_a_block(count));
    let (kib_each, cpu_ms) = (after.kib_each(&empty, count), after.cpu_ms_a_second(&before));
    let mut report = Report::new("drain", Figures { watches: after.watches, received, kib_each, cpu_ms });
    let ended = clients.look(|seen| seen.ended);
    report.bar(format!("streams that ended in order: {ended} of {count}"), ended == count);
    report.bar(
        format!("watchers that resumed at the other edge: {} of {count}", back.len()),
        back.len() == count && after.watches == count,
    );
    let longest = back.iter().max().copied().unwrap_or_default();
    report.bar_at_most("the last one has resumed", longest, play.bound(BACK_WITHIN));
    report.bar_at_most("the edge has ended", stopped, Duration::from_secs(GRACE_S));
    clients.judge(&mut report);
    fixture.none_is_missed(&mut report);
    clients.look(|seen| {
        let p50 = in_ms(quantile(back, 0.5));
        report
            .notes
            .push(format!("half resumed within {p50}, {} connections were refused", seen.unconnected));
        let again = seen.begun_again;
        report
            .notes
            .push(format!("{again} resumed at a newer block with the answer that they already had (W6)"));
    });
    drop(clients);
    fixture.mesh.stop_all(OTHER).await?;
    Ok(report)
}
