//! Sections "point" and "hop": single rows through the mesh and by the same handler without the bus.
//!
//! "point" uses many connections, so that the processors limit the rate; "hop" uses one, so that latency
//! does. The edge has no cache, since the reads of the store are measured.

use std::time::Duration;

use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
    terminal::print_line,
};

use super::{
    comparison::{self, Side},
    load::Load,
    reads::{Baselines, Fixture},
    section::Section,
    sections::SectionName,
    withdrawals,
};
use crate::{bench::args::Baseline, private::UNCACHED_EDGE};

const CONNECTIONS: u64 = 32;

impl Baselines {
    /// Starts the baselines and checks that all sides give the same answer.
    async fn start(fixture: &Fixture<'_>) -> Result<Self, Failure> {
        let Fixture { mesh, servers, .. } = fixture;
        let paths = withdrawals::paths(servers, withdrawals::ROWS).await?;
        let one = mesh.start_baseline(servers, Baseline::Direct, "direct", &paths[0], None).await?;
        let more =
            mesh.start_baseline(servers, Baseline::DirectThreads, "direct-threads", &paths[0], None).await?;
        let mut answers = Vec::new();
        for side in [fixture.edges.uncached, one, more] {
            let url = format!("http://{side}{}", paths[0]);
            let answered = async { reqwest::get(url).await?.error_for_status()?.text().await };
            answers.push(answered.await.map_err(|error| cannot("read a withdrawal", &error))?);
        }
        match answers.iter().all(|answer| answer == &answers[0]) {
            true => Ok(Self { one, more, paths }),
            false => Err(Failure::failed(format!("the sides answer differently: {}", answers.join(" ")))),
        }
    }
}

async fn compare<'a>(
    fixture: &Fixture<'_>,
    connections: u64,
    length: Duration,
) -> Result<[Side<'a>; 3], Failure> {
    let baselines = fixture.baselines.get_or_try_init(|| Baselines::start(fixture)).await?;
    let side = |name, address, processes: &[&str]| {
        let load = Load::paths(address, baselines.paths.clone(), connections, length);
        Side::load(name, load, fixture.mesh.watch(processes))
    };
    comparison::run_rounds([
        side("mesh", fixture.edges.uncached, &[UNCACHED_EDGE, NATS, "query", POSTGRES]),
        side("direct, 1 thread", baselines.one, &["direct", POSTGRES]),
        side("direct, 2+1 threads", baselines.more, &["direct-threads", POSTGRES]),
    ])
    .await
}

/// Section "point".
pub(super) async fn point(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line("reading single rows, with the bus and without");
    let sides = compare(fixture, CONNECTIONS, fixture.length).await?;
    let [product, one, more] = &sides;
    let best = if more.rate() > one.rate() { more } else { one };
    let title = format!("{} withdrawals by id, {CONNECTIONS} connections", withdrawals::ROWS);
    Ok(comparison::section(SectionName::Point, &title, &sides, &[product.rate_to(best, "requests")]))
}

/// Section "hop".
pub(super) async fn hop(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line("reading single rows in sequence");
    let sides = compare(fixture, 1, fixture.length / 2).await?;
    let [product, one, more] = &sides;
    let best = if more.p50_ms() < one.p50_ms() { more } else { one };
    let found = product.delay_to(best, "request");
    Ok(comparison::section(SectionName::Hop, "the same over 1 connection", &sides, &[found]))
}
