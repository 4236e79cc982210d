//! Section "heads": the time from a block's COMMIT until two edges show it.
//!
//! Both edges are polled with the same request. They cache the answer until a newer block is announced, so
//! the first answer with the new height includes the time of the announcement and that of the new read.

use std::time::{Duration, Instant};

use mesh::{
    failure::{Failure, cannot},
    terminal::print_line,
};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    reads::Fixture,
    section::{Line, Section, quantile},
    sections::SectionName,
    withdrawals,
};
use crate::empty_blocks::NEXT_BLOCK;
use crate::private::Servers;

const BLOCKS: usize = 100;
/// Time between two blocks, milliseconds: shorter than the second after which a cached answer expires by age.
const GAP_MS: std::ops::Range<u64> = 100..200;
/// Polling interval, which is also the uncertainty of the results.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Longest wait for the last block.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Process name of the second edge.
const OTHER: &str = "edge-other";

/// Block heights, each with the time when it was written or first seen.
pub(super) type Seen = Vec<(u64, Instant)>;

/// Runs the measurement.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line("writing blocks and looking when two edges show them");
    let servers = &fixture.servers;
    let edges = [
        fixture.edges.cached,
        fixture.mesh.start_named(servers, &[("edge", OTHER)], Vec::new(), None).await?,
    ];
    let path = withdrawals::paths(servers, 1).await?[0].clone();
    let (newest, watched) = watch::channel(None);
    let polling =
        edges.map(|edge| tokio::spawn(poll(format!("http://{edge}{path}"), watched.clone(), POLL_INTERVAL)));
    let written = write(servers).await?;
    newest.send_replace(written.last().map(|(height, _)| *height));
    let mut delays = Vec::new();
    for polling in polling {
        let seen = timeout(TIMEOUT, polling).await;
        let seen = seen.map_err(|_| Failure::failed("an edge did not show the last block"))?;
        delays.extend(delays_ms(&written, &seen.map_err(|error| cannot("poll an edge", &error))??));
    }
    let title =
        format!("heads: from the end of COMMIT to an answer of that height, {BLOCKS} blocks, 2 edges");
    let p50 = quantile(&delays, 0.5);
    let line = Line::new("side", "mesh")
        .value(("p50 ms", "p50Ms"), 1, p50)
        .value(("p99 ms", "p99Ms"), 1, quantile(&delays, 0.99))
        .value(("longest ms", "longestMs"), 1, quantile(&delays, 1.0))
        .figure("blocks", BLOCKS)
        .figure("edges", edges.len());
    let found = ("a new block at every edge, ms of the median".to_owned(), p50);
    Ok(Section::new(SectionName::Heads, &title, &[line], "", &[found]))
}

/// Writes blocks; returns each height with the time when its COMMIT had returned.
async fn write(servers: &Servers) -> Result<Seen, Failure> {
    let database = servers.connect("").await?;
    let mut random = SmallRng::seed_from_u64(1);
    let mut written = Vec::with_capacity(BLOCKS);
    for _ in 0..BLOCKS {
        sleep(Duration::from_millis(random.random_range(GAP_MS))).await;
        let row = database.query_one(NEXT_BLOCK, &[]).await;
        let height: i64 = row.map_err(|error| cannot("write a block", &error))?.get(0);
        written.push((height.unsigned_abs(), Instant::now()));
    }
    Ok(written)
}

/// Polls an edge and records each new height, until the last block has been seen.
pub(super) async fn poll(
    url: String,
    last: watch::Receiver<Option<u64>>,
    pause: Duration,
) -> Result<Seen, Failure> {
    let client = reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build();
    let client = client.map_err(|error| cannot("make an HTTP client", &error))?;
    let mut seen = Seen::new();
    while last.borrow().is_none_or(|last| seen.last().is_none_or(|(height, _)| *height < last)) {
        let answer = client.get(&url).send().await.and_then(reqwest::Response::error_for_status);
        let answer = answer.map_err(|error| cannot("ask an edge", &error))?;
        let height =
            answer.headers().get("x-block-height").and_then(|value| value.to_str().ok()?.parse().ok());
        let now = Instant::now();
        let height: u64 = height.ok_or_else(|| Failure::failed("an answer tells no height"))?;
        if seen.last().is_none_or(|(before, _)| *before < height) {
            seen.push((height, now));
        }
        // The client reuses the connection only after the whole body was read.
        answer.bytes().await.map_err(|error| cannot("read an answer", &error))?;
        sleep(pause).await;
    }
    Ok(seen)
}

/// Milliseconds from the time of each block until it or a newer one was seen; infinite when it never was.
pub(super) fn delays_ms(written: &[(u64, Instant)], seen: &[(u64, Instant)]) -> Vec<f64> {
    let delay = |(height, committed): &(u64, Instant)| {
        let (_, at) = seen.iter().find(|(shown, _)| shown >= height)?;
        Some(at.saturating_duration_since(*committed).as_secs_f64() * 1e3)
    };
    written.iter().map(|block| delay(block).unwrap_or(f64::INFINITY)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_there_when_it_or_a_newer_one_is_seen() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let written = [(5, at(10)), (6, at(20)), (7, at(30)), (8, at(40))];
        let seen = [(4, at(1)), (5, at(9)), (7, at(36))];
        let delays = delays_ms(&written, &seen);
        assert_eq!(delays[..3].iter().map(|ms| ms.round()).collect::<Vec<_>>(), [0.0, 16.0, 6.0]);
        assert!(delays[3].is_infinite(), "it was never seen");
    }
}
