//! `mesh bench`: measurements on a private mesh that is thrown away afterwards.
//!
//! Comes in: what to measure. Goes out: a table on standard output, and the same figures as JSON into a file. What
//! is compared runs in turns, so that a busy moment of the machine meets both sides.

mod depth;
mod private;
mod table;

use serde_json::{Value, json};

use crate::cli::{BenchArgs, Suite};
use crate::failure::Failure;
use crate::signals::Signals;
use private::PrivateMesh;

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
    let section = match args.suite {
        Suite::Reads => depth::measure(mesh, args.runs).await?,
    };
    print!("{}", section.table);
    if let Some(file) = &args.json {
        let figures = json!({ "sections": [section.figures] });
        std::fs::write(file, format!("{figures:#}\n")).map_err(|error| {
            Failure::failed(format!("cannot write {} ({error}); give another file", file.display()))
        })?;
    }
    section.verdict
}

/// What a section found.
struct Section {
    table: String,
    figures: Value,
    /// Whether the figures are as they must be.
    verdict: Result<(), Failure>,
}
