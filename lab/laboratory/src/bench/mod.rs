//! `mesh bench`: measurements on a private mesh, which is removed afterwards.
//!
//! Prints a table, and optionally writes the same figures to a JSON file. Compared sides run in alternating rounds,
//! so that other load on the machine affects all of them.

mod alone;
pub(crate) mod args;
pub(crate) mod baseline;
mod baseline_process;
mod comparison;
pub(crate) mod cost;
mod deep_pages;
mod distinct;
mod exports;
mod following;
mod heads;
mod hot;
mod idle;
mod ingest;
mod load;
mod meter;
mod page;
mod plain;
mod point;
mod postgres_client;
mod reads;
mod relay;
mod section;
pub(crate) mod sections;
mod store;
mod telemetry_overhead;
mod watchers;
mod watching;
mod withdrawals;

use mesh::{failure::Failure, signals};
use serde_json::{Value, json};

use self::{
    exports::{first_byte, ledger, reads_beside_downloads, scaled, scaling, sealing, splice},
    section::Section,
    sections::{SectionName, Suite},
};
use crate::{bench::args::BenchArgs, private::PrivateMesh};

/// Runs the chosen sections, prints their tables and writes the figures.
///
/// # Errors
/// When a bar does not hold, a section fails, or the figures cannot be written.
pub(crate) async fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let names = sections::chosen(args.suite, &args.section)?;
    let mut signals = signals::watch()?;
    let mut sections = Vec::new();
    // Each suite has its own mesh, so that data and processes of one do not affect another.
    for names in names.chunk_by(|one, next| one.suite() == next.suite()) {
        let mesh = PrivateMesh::new()?;
        let outcome = tokio::select! {
            outcome = measure(&mesh, names, args) => outcome,
            () = signals.stop() => Err(Failure::failed("the benchmark was interrupted; run it again for figures")),
        };
        mesh.stop().await;
        sections.extend(outcome?);
    }
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

/// Runs sections of one suite, and prints each as soon as it is finished.
async fn measure(
    mesh: &PrivateMesh,
    names: &[SectionName],
    args: &BenchArgs,
) -> Result<Vec<Section>, Failure> {
    let fixture = Fixture::start(mesh, names, args).await?;
    let mut sections = Vec::new();
    for &name in names {
        let measured = fixture.measure(name).await;
        let section = measured.unwrap_or_else(|failure| Section::failed(name, failure));
        println!("{}", section.table);
        sections.push(section);
    }
    Ok(sections)
}

/// The running mesh of a suite with its data.
enum Fixture<'a> {
    Reads(Box<reads::Fixture<'a>>),
    Exports(Box<exports::Fixture<'a>>),
    Relay(Box<relay::Fixture<'a>>),
    Watch(Box<watching::Fixture<'a>>),
    Ingest(Box<ingest::Fixture<'a>>),
    Rest(Box<idle::Fixture<'a>>),
    /// The section "page" needs no server.
    None,
}

impl<'a> Fixture<'a> {
    async fn start(mesh: &'a PrivateMesh, names: &[SectionName], args: &BenchArgs) -> Result<Self, Failure> {
        Ok(match names.first().map(|name| name.suite()) {
            Some(Suite::Reads) if names != [SectionName::Page] => {
                Self::Reads(Box::new(reads::Fixture::start(mesh, args).await?))
            }
            Some(Suite::Exports) => {
                Self::Exports(Box::new(exports::Fixture::start(mesh, names, args).await?))
            }
            Some(Suite::Watch) => Self::Watch(Box::new(watching::Fixture::start(mesh, args).await?)),
            Some(Suite::Ingest) => Self::Ingest(Box::new(ingest::Fixture::start(mesh, args).await?)),
            Some(Suite::Rest) => Self::Rest(Box::new(idle::Fixture::start(mesh).await?)),
            Some(Suite::Relay) => Self::Relay(Box::new(relay::Fixture::start(mesh, args).await?)),
            _ => Self::None,
        })
    }

    async fn measure(&self, name: SectionName) -> Result<Section, Failure> {
        match (name, self) {
            (SectionName::Page, _) => page::measure().await,
            (SectionName::Point, Self::Reads(fixture)) => point::point(fixture).await,
            (SectionName::Hop, Self::Reads(fixture)) => point::hop(fixture).await,
            (SectionName::Alone, Self::Reads(fixture)) => alone::measure(fixture).await,
            (SectionName::Hot, Self::Reads(fixture)) => hot::measure(fixture).await,
            (SectionName::Store, Self::Reads(fixture)) => store::measure(fixture).await,
            (SectionName::Lists, Self::Reads(fixture)) => plain::lists(fixture).await,
            (SectionName::Points, Self::Reads(fixture)) => plain::points(fixture).await,
            (SectionName::Distinct, Self::Reads(fixture)) => distinct::measure(fixture).await,
            (SectionName::Idle, Self::Rest(fixture)) => idle::measure(fixture).await,
            (SectionName::Following, Self::Rest(fixture)) => following::measure(fixture).await,
            (SectionName::CatchUp, Self::Ingest(fixture)) => fixture.catch_up().await,
            (SectionName::Front, Self::Ingest(fixture)) => fixture.front().await,
            (SectionName::Depth, Self::Reads(fixture)) => deep_pages::measure(fixture).await,
            (SectionName::Heads, Self::Reads(fixture)) => heads::measure(fixture).await,
            (SectionName::Telling, Self::Reads(fixture)) => telemetry_overhead::measure(fixture).await,
            (SectionName::Splice, Self::Exports(fixture)) => splice::measure(fixture).await,
            (SectionName::FirstByte, Self::Exports(fixture)) => first_byte::measure(fixture).await,
            (SectionName::Sealing, Self::Exports(fixture)) => sealing::measure(fixture).await,
            (SectionName::Ledger, Self::Exports(fixture)) => ledger::measure(fixture).await,
            (SectionName::Scaling, Self::Exports(fixture)) => scaling::measure(fixture).await,
            (SectionName::Beside, Self::Exports(fixture)) => reads_beside_downloads::measure(fixture).await,
            (SectionName::Scaled, Self::Exports(fixture)) => scaled::measure(fixture).await,
            (SectionName::Submit, Self::Relay(fixture)) => fixture.submit().await,
            (SectionName::SubmitHop, Self::Relay(fixture)) => fixture.hop().await,
            (SectionName::Watchers, Self::Watch(fixture)) => fixture.busy().await,
            (SectionName::WatchQuiet, Self::Watch(fixture)) => fixture.quiet().await,
            (SectionName::WatchBeside, Self::Watch(fixture)) => fixture.beside().await,
            (name, _) => Err(Failure::failed(format!("{name} is of another suite"))),
        }
    }
}
