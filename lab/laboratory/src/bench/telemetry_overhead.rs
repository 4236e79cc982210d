//! Section "telling": the overhead of telemetry: reads of single rows with metrics and traces sent to a
//! collector at default settings, compared with none.

use mesh::{
    failure::Failure,
    processes::{NATS, POSTGRES},
    terminal::print_line,
};
use mesh_testbed::{Collector, Manner};

use super::{
    baseline,
    comparison::{self, Side},
    load::Load,
    reads::Fixture,
    section::Section,
    sections::SectionName,
    withdrawals,
};
use crate::private::UNCACHED_EDGE;

const CONNECTIONS: u64 = 32;
/// Process names of the services with telemetry.
const PROCESSES: [&str; 2] = ["edge-telling", "query-telling"];

/// Runs the comparison.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line("reading single rows, with telemetry and without");
    // Its processor time is part of neither side.
    let collector = Collector::of(Manner::Discards).await;
    let variables = [
        ("MESH_BUS_PREFIX", "telling".to_owned()),
        ("MESH_EDGE_CACHE_BYTES", "0".to_owned()),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    let variables = variables.into_iter().chain([baseline::points()]).collect();
    let services = [("edge", PROCESSES[0]), ("query", PROCESSES[1])];
    let edge = fixture.mesh.start_named(&fixture.servers, &services, variables, None).await?;
    let paths = withdrawals::paths(&fixture.servers, withdrawals::ROWS).await?;
    let side = |name, address, processes: &[&str]| {
        let load = Load::paths(address, paths.clone(), CONNECTIONS, fixture.length);
        Side::load(name, load, fixture.mesh.watch(processes))
    };
    let sides = comparison::run_rounds([
        side("with telemetry", edge, &[PROCESSES[0], NATS, PROCESSES[1], POSTGRES]),
        side("without", fixture.edges.uncached, &[UNCACHED_EDGE, NATS, "query", POSTGRES]),
    ])
    .await?;
    let (Some(with), Some(without)) = (sides[0].cost(), sides[1].cost()) else {
        return Err(Failure::failed("the cost of processes is unknown on this system"));
    };
    let pushes = collector.taken().requests;
    if pushes == 0 {
        return Err(Failure::failed("the collector received nothing"));
    }
    let what = format!("with telemetry / without, CPU time of a request ({pushes} pushes)");
    let title = format!("{} withdrawals by id, {CONNECTIONS} connections", withdrawals::ROWS);
    Ok(comparison::section(SectionName::Telling, &title, &sides, &[(what, with / without)]))
}
