//! Section "front": the time from a block at the node's RPC until a read at an edge shows it.

use std::time::{Duration, Instant};

use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
};
use mesh_launcher::services::INGEST;
use tokio::time::{sleep, timeout};

use super::{
    super::{
        meter::Meter,
        section::{Figures, quantile},
        world::World,
    },
    chain,
};
use crate::{
    generated_chain::now_ms,
    metrics,
    private::connect,
    private::{Layout, UNCACHED_EDGE},
    private_ingest::{Ingest, stored},
    watches::HeightAt,
};

/// Rows of a block, and the time to the next one.
const ROWS: u64 = 500;
const PERIOD: Duration = Duration::from_secs(1);
/// Blocks that are rendered before the first one that is measured.
const MORE: u64 = 120;
/// Shortest measurement, so that it has enough blocks.
const LEAST_LENGTH: Duration = Duration::from_secs(60);
/// How often the edge is read, which is also the uncertainty of the results.
const POLL_PAUSE: Duration = Duration::from_millis(2);
const WITHIN: Duration = Duration::from_secs(60);
/// What is read: rows that each block has.
const PATH: &str = "/api/v2/markets?pagination.first=5";

/// Runs the measurement.
pub(crate) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let World { mesh, servers, .. } = world;
    let length = world.length().max(LEAST_LENGTH);
    let blocks = length.as_secs() / PERIOD.as_secs();
    let (_port, mut args) = chain(ROWS, 1, PERIOD)?;
    args.rendered = blocks + MORE;
    mesh.start_chain("chain-front", &args).await?;
    let replicas = [("tx-relay", 0), ("export", 0), (UNCACHED_EDGE, 0), (INGEST, 0)];
    let layout = Layout { replicas: &replicas, node_url: Some(args.url()), ..Layout::default() };
    let edge = mesh.start_services(servers, &layout).await?.cached;
    let ingest = Ingest { name: "ingest-front", database: &servers.database, chain: &args, env: &[] };
    mesh.start_ingest(servers, &ingest, 1)?;
    mesh.ready(&[ingest.name]).await?;
    let client = connect(servers.database.url()).await?;
    stored(&client, args.latest(), WITHIN).await?;
    let first = args.latest() + 2;
    let (now, clock_ms) = (Instant::now(), now_ms());
    let due = |height| now + Duration::from_millis(args.available_ms(height).saturating_sub(clock_ms));
    let available: Vec<_> = (first..first + blocks).map(|height| (height, due(height))).collect();
    let meter = Meter::start(&mesh.watch(&[ingest.name, "edge", "query", "node-info", NATS, POSTGRES]));
    let polling = poll(format!("http://{edge}{PATH}"), first + blocks - 1);
    let seen = timeout(length + WITHIN, polling).await;
    let spent = meter.stop(0.0);
    let delays = delays_ms(&available, &seen.map_err(|error| cannot("see the last block", &error))??);
    let [p50, p99, longest] = [0.5, 0.99, 1.0].map(|share| quantile(&delays, share));
    let title =
        format!("from the node's RPC to a read at an edge, {blocks} blocks with {ROWS} rows, one a second");
    let note = format!("p50 {p50:.1} ms, p99 {p99:.1} ms, longest {longest:.1} ms\n");
    let (lines, found) = (spent.lines().collect(), vec![p99, p50]);
    Ok(Figures { title, lines, note, found, ..Figures::default() })
}

/// Polls an edge and records each new height, until it has seen the last one. The edge caches the answer until
/// a newer block is announced.
async fn poll(url: String, last: u64) -> Result<Vec<HeightAt>, Failure> {
    let (client, mut seen) = (metrics::local_client(), Vec::<HeightAt>::new());
    while seen.last().is_none_or(|(height, _)| *height < last) {
        let answer = client.get(&url).send().await.and_then(reqwest::Response::error_for_status);
        let answer = answer.map_err(|error| cannot("read an edge", &error))?;
        let now = Instant::now();
        let height =
            answer.headers().get("x-block-height").and_then(|value| value.to_str().ok()?.parse().ok());
        let height = height.ok_or_else(|| Failure::failed("an answer has no height"))?;
        if seen.last().is_none_or(|(before, _)| *before < height) {
            seen.push((height, now));
        }
        // The client reuses the connection only after the whole body was read.
        answer.bytes().await.map_err(|error| cannot("read an answer", &error))?;
        sleep(POLL_PAUSE).await;
    }
    Ok(seen)
}

/// Milliseconds from the time of each block until it or a newer one was seen; infinite when it never was.
fn delays_ms(available: &[HeightAt], seen: &[HeightAt]) -> Vec<f64> {
    let delay = |(height, begun): &HeightAt| {
        let (_, at) = seen.iter().find(|(shown, _)| shown >= height)?;
        Some(at.saturating_duration_since(*begun).as_secs_f64() * 1e3)
    };
    available.iter().map(|block| delay(block).unwrap_or(f64::INFINITY)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_there_when_it_or_a_newer_one_is_seen() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let available = [(5, at(10)), (6, at(20)), (7, at(30)), (8, at(40))];
        let seen = [(4, at(1)), (5, at(9)), (7, at(36))];
        assert_eq!(delays_ms(&available, &seen), [0.0, 16.0, 6.0, f64::INFINITY]);
    }
}
