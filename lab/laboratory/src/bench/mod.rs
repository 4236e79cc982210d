//! `mesh bench`: measurements on a private mesh, which is removed afterwards.
//!
//! Prints a table, and optionally writes the same figures to a JSON file. Compared sides run in alternating rounds,
//! so that other load on the machine affects all of them.

pub(crate) mod args;
pub(crate) mod baseline;
mod comparison;
pub(crate) mod cost;
mod exports;
mod http_load;
mod ingest;
mod lists;
mod load;
mod meter;
mod postgres_client;
mod relay;
mod rest;
mod rows;
mod section;
mod sections;
mod secured;
mod watching;
mod world;

use mesh::{failure::Failure, signals};
use serde_json::{Value, json};

use self::{args::BenchArgs, section::Section, sections::Row, world::World};
use crate::{private::PrivateMesh, rig::write_figures};

/// Runs the chosen sections, prints their tables and writes the figures.
///
/// # Errors
/// When a bar does not hold, a section fails, or the figures cannot be written.
pub(crate) async fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let suites = sections::chosen(&args.suite, &args.section)?;
    let mut signals = signals::watch()?;
    let mut sections = Vec::new();
    // Each suite has its own mesh, so that data and processes of one do not affect another.
    for rows in suites {
        let mesh = PrivateMesh::new()?;
        let outcome = tokio::select! {
            outcome = measure(&mesh, &rows, args) => outcome,
            () = signals.stop() => Err(Failure::failed("the benchmark was interrupted; run it again for figures")),
        };
        mesh.stop().await;
        sections.extend(outcome?);
    }
    let figures: Vec<&Value> = sections.iter().map(|section| &section.figures).collect();
    write_figures(args.json.as_deref(), &json!({ "sections": figures }))?;
    let failures: Vec<String> =
        sections.into_iter().filter_map(|section| Some(section.verdict.err()?.to_string())).collect();
    if failures.is_empty() { Ok(()) } else { Err(Failure::failed(failures.join("; "))) }
}

/// Runs sections of one suite, and prints each as soon as it is finished.
async fn measure(mesh: &PrivateMesh, rows: &[&Row], args: &BenchArgs) -> Result<Vec<Section>, Failure> {
    let world = World::start(mesh, args).await?;
    let mut sections = Vec::new();
    for row in rows {
        mesh::terminal::print_line(row.about);
        let section = Section::new(row, (row.measure)(&world).await);
        mesh::terminal::print(&section.table)?;
        sections.push(section);
    }
    Ok(sections)
}
