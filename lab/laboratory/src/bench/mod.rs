//! `mesh bench`: measurements on a private mesh, which is removed afterwards.
//!
//! Prints a table, and optionally writes the same figures to a JSON file. Compared sides run in alternating rounds,
//! so that other load on the machine affects all of them.

pub(crate) mod baseline;
mod comparison;
pub(crate) mod cost;
mod exports;
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

use std::path::PathBuf;

use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser},
};
use mesh::{failure::Failure, signals};
use mesh_launcher::RestartRule;
use serde_json::{Value, json};

use self::{
    section::Section,
    sections::{ALL, Row, SUITES},
    world::World,
};
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
        let mesh = PrivateMesh::new(RestartRule::default())?;
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

/// Options of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// The suite to measure, or one section
    #[arg(default_value = "reads", value_parser = suites())]
    pub(crate) suite: String,
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Measure only this section, repeatable [default: all]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(sections()))]
    pub(crate) section: Vec<String>,
    /// Length of a timed round of load
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Size of the stored history of the exports suite, in megabytes of segment files
    #[arg(
        long, value_name = "MB", default_value_t = 2000,
        value_parser = clap::value_parser!(u64).range(10..=100_000)
    )]
    pub(crate) megabytes: u64,
    /// Rows that the sealing section seals; the ledger section exports half as many
    #[arg(
        long, value_name = "N", default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u64).range(1000..=10_000_000)
    )]
    pub(crate) rows: u64,
}

fn sections() -> impl Iterator<Item = PossibleValue> {
    let rows = SUITES.iter().flat_map(|suite| suite.sections);
    rows.map(|row| PossibleValue::new(row.name).help(row.about))
}

fn suites() -> PossibleValuesParser {
    let suites = SUITES.iter().map(|suite| PossibleValue::new(suite.name).help(suite.about));
    let all = PossibleValue::new(ALL).help("All suites in sequence");
    PossibleValuesParser::new(suites.chain([all]).chain(sections().map(|section| section.hide(true))))
}

/// A process that `bench` compares the product with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Baseline {
    /// The handler of single rows with warp, without the bus, on one thread
    Direct,
    /// The same, with two threads for HTTP and one for the handler
    DirectThreads,
    /// Hello, World, on one thread
    Hello,
    /// The repeated answer of another server to one request, on one thread
    Repeated,
}
