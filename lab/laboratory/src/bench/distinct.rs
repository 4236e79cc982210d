//! Section "distinct": rows of which each is read once, through the default cache and without one.

use mesh::{
    failure::Failure,
    processes::{NATS, POSTGRES},
    terminal::print_line,
};

use super::{
    comparison::{self, Side},
    load::Load,
    reads::Fixture,
    section::Section,
    sections::SectionName,
    withdrawals,
};
use crate::private::UNCACHED_EDGE;

const CONNECTIONS: u64 = 32;

/// Compares both edges by the processor time of a request.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line("reading single rows through the cache and without one");
    let paths = withdrawals::paths(&fixture.servers, withdrawals::ROWS).await?;
    let side = |name, address, processes: &[&str]| {
        let load = Load::paths(address, paths.clone(), CONNECTIONS, fixture.length);
        Side::load(name, load, fixture.mesh.watch(processes))
    };
    let sides = comparison::run_rounds([
        side("default cache", fixture.edges.cached, &["edge", NATS, "query", POSTGRES]),
        side("no cache", fixture.edges.uncached, &[UNCACHED_EDGE, NATS, "query", POSTGRES]),
    ])
    .await?;
    let ratio = sides[0].cost().zip(sides[1].cost()).map_or(f64::NAN, |(with, without)| with / without);
    let found = ("default cache / no cache, CPU time of a request".to_owned(), ratio);
    let title = format!("{} withdrawals by id, {CONNECTIONS} connections", withdrawals::ROWS);
    Ok(comparison::section(SectionName::Distinct, &title, &sides, &[found]))
}
