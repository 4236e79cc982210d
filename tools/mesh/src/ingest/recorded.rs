//! Recorded blocks: JSON lines, each a block with its results as the node serves them.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    ops::RangeInclusive,
    path::Path,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use mesh_ingest::{
    Decoder, FetchedBlock, StatedRow,
    node::{FetchError, Nodes},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    args::{DecodeArgs, RecordArgs},
    json_fault, lines,
    place::Variables,
};
use crate::{
    failure::{Failure, failed},
    signals::run_until_stopped,
    terminal,
};

/// Number of blocks that are fetched at the same time.
pub(super) const FETCHES: usize = 16;

#[derive(Serialize, Deserialize)]
struct Line {
    block: Box<RawValue>,
    results: Box<RawValue>,
}

pub(super) async fn record(args: &RecordArgs) -> Result<(), Failure> {
    let RecordArgs { place, from, to, output } = args;
    if from > to {
        return Err(Failure::usage("--from is above --to"));
    }
    let nodes = Variables::of(&place.home).await?.nodes(place.node.as_deref())?;
    let heights = *from..=*to;
    if output == Path::new("-") {
        return write(&nodes, heights, io::stdout().lock()).await;
    }
    let failed = |error: io::Error| failed!("cannot write {}: {error}", output.display());
    if fs::metadata(output).is_ok_and(|found| !found.is_file()) {
        let file = File::options().write(true).open(output).map_err(failed)?;
        return write(&nodes, heights, file).await;
    }
    let output = &fs::canonicalize(output).unwrap_or_else(|_| output.clone());
    // Under another name until it is complete, so that a part of a recording is never taken for one.
    let part = output.with_added_extension("part");
    let recording = async {
        let file = File::create(&part).map_err(failed)?;
        write(&nodes, heights, file).await
    };
    match run_until_stopped(recording, "stopped; nothing is recorded, repeat the call").await {
        Ok(()) => fs::rename(&part, output).map_err(failed),
        Err(failure) => {
            let _ = fs::remove_file(&part);
            Err(failure)
        }
    }
}

async fn write(nodes: &Nodes, heights: RangeInclusive<u64>, output: impl io::Write) -> Result<(), Failure> {
    let mut output = BufWriter::new(output);
    let mut blocks = fetch_all(nodes, heights);
    let mut written = Ok(());
    while let (Ok(()), Some(FetchedBlock { block, results, .. })) = (&written, blocks.try_next().await?) {
        let line = serde_json::to_string(&Line { block, results })?;
        written = writeln!(output, "{line}");
    }
    match written.and_then(|()| output.flush()) {
        // A closed pipe is no failure: its reader has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(failed!("cannot write the blocks: {error}"))
        }
        _ => Ok(()),
    }
}

/// Fetches blocks, in their order.
pub(super) fn fetch_all(
    nodes: &Nodes,
    heights: impl IntoIterator<Item = u64>,
) -> impl stream::Stream<Item = Result<FetchedBlock, Failure>> + Unpin {
    let fetches = stream::iter(heights).map(move |height| async move {
        nodes.fetch(height).await.map_err(|error| unfetched(&format!("block {height}: "), &error))
    });
    Box::pin(fetches.buffered(FETCHES))
}

/// The failure of a request to the node. One that gives no answer of a node is a server that is missing.
pub(super) fn unfetched(what: &str, error: &FetchError) -> Failure {
    match error {
        FetchError::Unavailable(_) => {
            Failure::missing(format!("{what}{error}; check it, or name another one with --node"))
        }
        error => failed!("{what}{error}"),
    }
}

pub(super) async fn decode(args: &DecodeArgs) -> Result<(), Failure> {
    let variables = Variables::of(&args.place.home).await?;
    let decoder = variables.decoder(&args.place).await?;
    if let Some(height) = args.height {
        let nodes = variables.nodes(args.place.node.as_deref())?;
        let block = fetch_all(&nodes, [height]).try_next().await?;
        let Some(block) = block else { return Ok(()) };
        return print_rows(&decoder, &block).await.map(drop);
    }
    let path = args.blocks.as_deref().unwrap_or(Path::new("-"));
    let failed = |error: std::io::Error| failed!("cannot read {}: {error}", path.display());
    for (line, number) in lines(path).map_err(failed)?.zip(1..) {
        let line = line.map_err(failed)?;
        if line.trim().is_empty() {
            continue;
        }
        let at = |error: &dyn std::fmt::Display| failed!("{}, line {number}: {error}", path.display());
        let Line { block, results } = serde_json::from_str(&line).map_err(|error| at(&json_fault(&error)))?;
        let block = FetchedBlock::read(block, results).map_err(|error| at(&error))?;
        let rows = print_rows(&decoder, &block).await?;
        terminal::print_line(&format!("block {}: {rows} rows", block.height));
    }
    Ok(())
}

/// Returns the number of rows.
async fn print_rows(decoder: &Decoder, block: &FetchedBlock) -> Result<usize, Failure> {
    let rows = decoder.decode(block).await.map_err(|error| failed!("block {}: {error}", block.height))?;
    for row in &rows {
        let printed = terminal::try_print(&serde_json::to_string(&StatedRow::of(row))?);
        printed.map_err(|error| terminal::unwritten(&error))?;
    }
    Ok(rows.len())
}
