//! Proof of work, with a progress line.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use mesh_transaction::{Puzzle, SearchControl, search};
use tokio::task::spawn_blocking;

use crate::{failure::Failure, signals, terminal};

const PERIOD: Duration = Duration::from_millis(250);

/// Finds a nonce on all cores. Returns it and the number of tries; fails at a stop signal, and when no nonce is good
/// enough.
pub(super) async fn find(puzzle: Puzzle, difficulty: u32) -> Result<(u64, u64), Failure> {
    let mut signals = signals::watch()?;
    let begun = Instant::now();
    let effort = Arc::new(SearchControl::default());
    let searched = Arc::clone(&effort);
    let mut searching = spawn_blocking(move || search(&puzzle, difficulty, &searched));
    let watching = async {
        loop {
            tokio::time::sleep(PERIOD).await;
            terminal::overwrite(&line(effort.tries(), difficulty, begun.elapsed().as_secs_f64()));
        }
    };
    let found = tokio::select! {
        found = &mut searching => found,
        () = signals.stop() => {
            effort.stop();
            terminal::clear();
            return Err(Failure::failed("stopped before the proof of work was found"));
        }
        () = watching => return Err(Failure::failed("the search cannot be watched")),
    };
    terminal::clear();
    let nonce = found.ok().flatten();
    let nonce = nonce.ok_or_else(|| Failure::failed("no nonce is good enough; take another --tid"))?;
    Ok((nonce, effort.tries()))
}

/// The text of the progress line. The share is the probability of success after this number of tries.
fn line(tries: u64, difficulty: u32, seconds: f64) -> String {
    let chance = 1.0 - (-(tries as f64) / 2f64.powi(difficulty.cast_signed())).exp();
    let speed = tries as f64 / seconds.max(1e-9) / 1e6;
    let (millions, percent) = (tries as f64 / 1e6, chance * 100.0);
    format!(
        "proof of work: {millions:.1} million tries, {speed:.1} million/s, {percent:.0} % are done by now"
    )
}
