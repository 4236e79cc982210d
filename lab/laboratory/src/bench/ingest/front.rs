//! Section "front": the time from a block at the node's RPC until a read at an edge shows it.

use std::time::{Duration, Instant};

use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
    terminal::print_line,
};
use mesh_launcher::services::INGEST;
use tokio::{sync::watch, time::timeout};

use super::{
    super::{
        heads::{self, delays_ms},
        meter::Meter,
        section::{Line, Section, quantile},
        sections::SectionName,
    },
    Fixture, chain,
};
use crate::{
    generated_chain::now_ms,
    private::{Layout, UNCACHED_EDGE},
    private_ingest::{Ingest, connect, stored},
};

/// Rows of a block, and the time to the next one.
const ROWS: u64 = 500;
const PERIOD: Duration = Duration::from_secs(1);
/// Blocks that are rendered before the first one that is measured.
const MORE: u64 = 120;
/// How often the edge is read, which is also the uncertainty of the results.
const POLL_PAUSE: Duration = Duration::from_millis(2);
const WITHIN: Duration = Duration::from_secs(60);
/// What is read: rows that each block has.
const PATH: &str = "/api/v2/markets?pagination.first=5";

/// Runs the measurement.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let Fixture { mesh, servers, length, .. } = fixture;
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
    let client = connect(&servers.database).await?;
    stored(&client, args.latest(), WITHIN).await?;
    print_line(&format!("looking when an edge shows each of {blocks} blocks with {ROWS} rows"));
    let first = args.latest() + 2;
    let (now, clock_ms) = (Instant::now(), now_ms());
    let due = |height| now + Duration::from_millis(args.available_ms(height).saturating_sub(clock_ms));
    let available: Vec<_> = (first..first + blocks).map(|height| (height, due(height))).collect();
    let (_newest, last) = watch::channel(available.last().map(|(height, _)| *height));
    let meter = Meter::start(&mesh.watch(&[ingest.name, "edge", "query", "node-info", NATS, POSTGRES]));
    let polling = heads::poll(format!("http://{edge}{PATH}"), last, POLL_PAUSE);
    let seen = timeout(*length + WITHIN, polling).await;
    let spent = meter.stop(0);
    let seen = seen.map_err(|error| cannot("see the last block", &error))??;
    let delays = delays_ms(&available, &seen);
    let [p50, p99, longest] = [0.5, 0.99, 1.0].map(|share| quantile(&delays, share));
    let cpu = spent.watched.iter().zip(spent.cpu_us.iter().flatten());
    let lines: Vec<Line> = cpu
        .map(|(process, us)| {
            let ms = *us as f64 / 1e3 / spent.seconds;
            Line::new("process", &process.name).value(("CPU ms/s", "cpuMsPerSecond"), 2, ms)
        })
        .collect();
    let title = format!(
        "front: from the node's RPC to a read at an edge, {blocks} blocks with {ROWS} rows, one a second"
    );
    let note = format!("p50 {p50:.1} ms, p99 {p99:.1} ms, longest {longest:.1} ms\n");
    let found = ("from the node's RPC to a read at an edge, p99 ms".to_owned(), p99);
    let section = Section::new(SectionName::Front, &title, &lines, &note, &[found]);
    Ok(section.with("blocks", blocks).with("p50Ms", p50).with("longestMs", longest))
}
