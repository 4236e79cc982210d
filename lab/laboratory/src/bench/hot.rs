//! Section "hot": repeated reads of a hundred rows, while a block a second makes the edge's cache stale,
//! compared with a minimal warp server, and with one that repeats the edge's own bytes.

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
use crate::{bench::args::Baseline, empty_blocks::EmptyBlocks};

const CONNECTIONS: u64 = 32;
const ROWS: u64 = 100;

/// Compares the edge with a warp server that answers a constant.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let Fixture { mesh, servers, edges, length, .. } = fixture;
    let hello = ["/hello".to_owned()];
    let constant = mesh.start_baseline(servers, Baseline::Hello, "hello", &hello[0], None).await?;
    let hot = withdrawals::paths(servers, ROWS).await?;
    let repeated =
        mesh.start_baseline(servers, Baseline::Repeated, "repeated", &hot[0], Some(edges.cached)).await?;
    print_line("reading a hundred rows again and again");
    let side = |name, address, paths: &[String], processes: &[&str]| {
        Side::load(name, Load::paths(address, paths, CONNECTIONS, *length), mesh.watch(processes))
    };
    let sides = [
        side("mesh", edges.cached, &hot, &["edge", NATS, "query", POSTGRES]),
        side("warp hello", constant, &hello, &["hello"]),
        // What the length of the answer and its headers cost without any cache.
        side("warp, the mesh's bytes", repeated, &hot, &["repeated"]),
    ];
    let blocks = EmptyBlocks::write(servers);
    let sides = comparison::run_rounds(sides).await?;
    drop(blocks);
    let title = format!("{ROWS} withdrawals again and again, a block a second, {CONNECTIONS} connections");
    let found = [1, 2].map(|other| sides[0].rate_to(&sides[other], "requests"));
    Ok(comparison::section(SectionName::Hot, &title, &sides, &found))
}
