//! `mesh bench`: measurements on a private mesh that is thrown away afterwards.
//!
//! Comes in: what to measure. Goes out: a table on standard output, and the same figures as JSON into a file. What
//! is compared runs in turns, so that a busy moment of the machine meets both sides.

mod bar;
pub(crate) mod baseline;
mod compared;
mod contest;
mod cost;
mod depth;
mod hot;
mod load;
mod page;
mod point;
mod store;
mod withdrawals;

use std::time::Duration;

use clap::ValueEnum as _;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::cli::{BenchArgs, SectionName, Suite};
use crate::failure::Failure;
use crate::private::{Edges, Layout, PrivateMesh, Servers};
use crate::signals::Signals;

/// Measures, prints and keeps the figures.
pub(crate) async fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let mut signals = Signals::watch()?;
    let mesh = PrivateMesh::new()?;
    let outcome = tokio::select! {
        outcome = measure(&mesh, args) => outcome,
        () = signals.stop() => Err(Failure::failed("the benchmark was interrupted; run it again for figures")),
    };
    mesh.stop().await;
    outcome
}

async fn measure(mesh: &PrivateMesh, args: &BenchArgs) -> Result<(), Failure> {
    let Suite::Reads = args.suite;
    let mut names = args.section.clone();
    if names.is_empty() {
        names = SectionName::value_variants().to_vec();
    }
    names.sort();
    names.dedup();
    let sections = reads(mesh, &names, args).await?;
    if let Some(file) = &args.json {
        let figures: Vec<&Value> = sections.iter().map(|section| &section.figures).collect();
        let figures = json!({ "sections": figures });
        std::fs::write(file, format!("{figures:#}\n")).map_err(|error| {
            Failure::failed(format!("cannot write {} ({error}); give another file", file.display()))
        })?;
    }
    let failures: Vec<String> =
        sections.into_iter().filter_map(|section| Some(section.verdict.err()?.to_string())).collect();
    if failures.is_empty() { Ok(()) } else { Err(Failure::failed(failures.join("; "))) }
}

/// Measures reads, and prints each section as soon as it is known.
async fn reads(mesh: &PrivateMesh, names: &[SectionName], args: &BenchArgs) -> Result<Vec<Section>, Failure> {
    let stage = match names {
        // It needs no server.
        [SectionName::Page] => None,
        _ => Some(Stage::set(mesh, args).await?),
    };
    let mut sections = Vec::new();
    for name in names {
        let measured = match &stage {
            None => page::measure().await,
            Some(stage) => stage.measure(*name).await,
        };
        let section = measured.unwrap_or_else(|failure| Section::failed(*name, failure));
        println!("{}", section.table);
        sections.push(section);
    }
    Ok(sections)
}

/// Where reads are measured: everything runs and is filled.
struct Stage<'a> {
    mesh: &'a PrivateMesh,
    args: &'a BenchArgs,
    servers: Servers,
    edges: Edges,
    sides: OnceCell<point::Sides>,
}

impl<'a> Stage<'a> {
    async fn set(mesh: &'a PrivateMesh, args: &'a BenchArgs) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        withdrawals::fill(&servers).await?;
        let points = ("MESH_QUERY_POINT_CONNECTIONS".to_owned(), baseline::POINT_CONNECTIONS.to_string());
        let edges = mesh.start_services(&servers, &Layout { replicas: &[], env: vec![points] }).await?;
        Ok(Self { mesh, args, servers, edges, sides: OnceCell::new() })
    }

    async fn measure(&self, name: SectionName) -> Result<Section, Failure> {
        let (mesh, servers, edges) = (self.mesh, &self.servers, &self.edges);
        let length = Duration::from_secs(self.args.seconds.into());
        match name {
            SectionName::Point => self.sides().await?.point(mesh, length).await,
            SectionName::Hop => self.sides().await?.hop(mesh, length / 2).await,
            SectionName::Hot => hot::measure(mesh, servers, edges.cached, length).await,
            SectionName::Store => store::measure(mesh, servers, length).await,
            SectionName::Page => page::measure().await,
            SectionName::Depth => depth::measure(servers, edges.uncached, self.args.runs).await,
        }
    }

    /// Who is compared in two sections.
    async fn sides(&self) -> Result<&point::Sides, Failure> {
        let start = || point::Sides::start(self.mesh, &self.servers, self.edges.uncached);
        self.sides.get_or_try_init(start).await
    }
}

/// What a section found.
struct Section {
    table: String,
    figures: Value,
    /// Whether the figures are as they must be.
    verdict: Result<(), Failure>,
}

impl Section {
    /// A section that came to no figures.
    fn failed(name: SectionName, failure: Failure) -> Self {
        let name = name.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        Self {
            table: format!("{name}: failed, {failure}\n"),
            figures: json!({ "section": name, "failed": failure.to_string() }),
            verdict: Err(failure),
        }
    }
}
