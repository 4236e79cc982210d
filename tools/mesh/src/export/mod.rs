//! `mesh export`: downloads a table of the sealed history. The download is written to a `.part` file, renamed
//! when length and checksum are right; a later call resumes it. With `--csv` it is unpacked instead.

pub(crate) mod args;
mod fetch;
mod sink;
mod source;
mod unpack;

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use indicatif::DecimalBytes;
use mesh_store::dictionary;
use serde::Serialize;

use self::{
    args::{ExportArgs, Height},
    fetch::{Downloaded, Fetch},
    sink::{Csv, Paths, check_output, measure, plain_name},
    source::{FileInfo, Request},
};
use crate::{
    failure::{Failure, failed},
    gateway::Gateway,
    signals::run_until_stopped,
    terminal::{print, print_json, print_line},
};

#[derive(Debug, Serialize)]
struct Outcome<'a> {
    /// Lossy where it is not UTF-8.
    file: Cow<'a, str>,
    table: &'a str,
    from_block: u64,
    to_block: u64,
    /// Length of the file.
    bytes: u64,
    /// Rows of the table, when the gateway says so.
    rows: Option<u64>,
    /// Tag of the download.
    etag: &'a str,
    /// Checksum of the file, eight hex digits.
    crc32c: String,
    seconds: f64,
    /// Number of bytes that an earlier call had written and that were reused.
    resumed_from: u64,
}

pub(crate) async fn export(args: ExportArgs) -> Result<(), Failure> {
    let patience = Duration::from_secs(args.patience.into());
    // A gzip answer has no Content-Length, and a ZIP gains nothing by it.
    let gateway = Gateway::new(&args.gateway, patience, |client| client.no_gzip())?;
    let mut fetch = Fetch::new(gateway, args.retries);
    let outcome = run_until_stopped(download(&args, &mut fetch), "stopped").await;
    outcome.map_err(|failure| fetch.add_part_to(failure))
}

async fn download(args: &ExportArgs, fetch: &mut Fetch) -> Result<(), Failure> {
    let start = Instant::now();
    let out = args.output.as_deref() == Some(Path::new("-"));
    if out && args.json {
        return Err(Failure::usage(
            "--json cannot be combined with a file on standard output; name a file with -o",
        ));
    }
    check_columns(args)?;
    if let Some(file) = args.output.as_deref().filter(|output| !out && !is_folder(output)) {
        check_output(file, args.force)?;
    }
    let request = request(args, fetch).await?;
    let csv = args.csv.then(|| Csv { columns: args.columns.clone(), out });
    // A ZIP is unpacked from a file even if the CSV goes to standard output.
    let folder = (out && args.csv).then(tempfile::tempdir).transpose();
    let folder = folder.map_err(|error| {
        failed!("cannot make a temporary folder ({error}); set TMPDIR to a folder that can be written")
    })?;
    let paths_for = |info: &FileInfo| {
        let name = output_path(args, &request, info.name.as_deref());
        match (out, &folder) {
            (true, None) => Ok(None),
            (true, Some(folder)) => Paths::new(folder.path().join("export"), info.crc32c, false).map(Some),
            (false, _) => Paths::new(name, info.crc32c, args.force).map(Some),
        }
    };
    let mut downloaded = fetch.run(&request, paths_for, csv.clone(), args.force).await?;
    downloaded.file.take_if(|_| out);
    let seconds = start.elapsed().as_secs_f64();
    match &downloaded.file {
        Some(file) if args.json => {
            // A CSV is another file than the download.
            let written = if args.csv { Some(measure(file).await?) } else { None };
            let (bytes, crc32c) = written.unwrap_or((downloaded.info.bytes, downloaded.info.crc32c));
            print_json(&Outcome {
                file: file.to_string_lossy(),
                table: request.table.as_str_name(),
                from_block: request.from,
                to_block: request.to,
                bytes,
                rows: downloaded.info.rows,
                etag: &downloaded.info.etag,
                crc32c: format!("{crc32c:08x}"),
                seconds,
                resumed_from: downloaded.resumed_from,
            })?;
        }
        Some(file) => print(&summary(&downloaded, &file.display().to_string(), seconds))?,
        None => print_line(&summary(&downloaded, "standard output", seconds)),
    }
    Ok(())
}

/// Fails when the table does not have one of the columns to write, before it is downloaded.
fn check_columns(args: &ExportArgs) -> Result<(), Failure> {
    let relation = args.table.relation();
    let described = dictionary::tables().iter().filter(|described| described.table == relation);
    let known = described.flat_map(|described| &described.columns).map(|column| column.name.as_str());
    let known: Vec<&str> = known.collect();
    match args.columns.iter().flatten().find(|column| !known.contains(&column.as_str())) {
        None => Ok(()),
        Some(column) => Err(Failure::usage(format!(
            "the table has no column {column:?}; its columns are {}",
            known.join(", ")
        ))),
    }
}

/// Resolves the range of blocks. Only `first`, `last` and `--snap` need the list of segments.
async fn request(args: &ExportArgs, fetch: &mut Fetch) -> Result<Request, Failure> {
    let is_number = |height| matches!(height, Height::At(_));
    let plain = is_number(args.from_block) && is_number(args.to_block) && !args.snap;
    let spans = if plain { Vec::new() } else { fetch.spans().await? };
    let height = |height| match height {
        Height::At(height) => Some(height),
        Height::First => spans.iter().map(|(first, _)| *first).min(),
        Height::Last => spans.iter().map(|(_, last)| *last).max(),
    };
    let (Some(from), Some(to)) = (height(args.from_block), height(args.to_block)) else {
        return Err(Failure::failed(
            "no segment of the history is sealed yet; wait for it, or name the blocks",
        ));
    };
    if from > to {
        return Err(Failure::usage(format!(
            "--from-block {from} is greater than --to-block {to}; swap them"
        )));
    }
    let mut request = Request { table: args.table, from, to };
    if args.snap {
        // A height outside all segments stays: the gateway refuses it, so that no requested block is left out.
        let holding = |height| spans.iter().find(|(first, last)| (*first..=*last).contains(&height));
        request.from = holding(from).map_or(from, |(first, _)| *first);
        request.to = holding(to).map_or(to, |(_, last)| *last);
    }
    if (request.from, request.to) != (from, to) {
        print_line(&format!("taking blocks {}-{} instead of {from}-{to}", request.from, request.to));
    }
    Ok(request)
}

/// The path of the file: `--output`, or below that folder the name that the gateway offers.
fn output_path(args: &ExportArgs, request: &Request, offered: Option<&str>) -> PathBuf {
    let name = || {
        let own = || format!("{}-{}-{}.zip", request.table.relation(), request.from, request.to);
        let zip = offered.and_then(plain_name).unwrap_or_else(own);
        if args.csv { format!("{}.csv", zip.trim_end_matches(".zip")) } else { zip }
    };
    match &args.output {
        None => PathBuf::from(name()),
        Some(folder) if is_folder(folder) => folder.join(name()),
        Some(file) => file.clone(),
    }
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn summary(downloaded: &Downloaded, file: &str, seconds: f64) -> String {
    let bytes = downloaded.info.bytes;
    let rows = downloaded.info.rows.map(|rows| format!("{rows} rows, ")).unwrap_or_default();
    let before = match downloaded.resumed_from {
        0 => String::new(),
        before => format!(", {} of them before", DecimalBytes(before)),
    };
    let speed = bytes.saturating_sub(downloaded.resumed_from) as f64 / seconds.max(1e-9) / 1e6;
    format!("{rows}{bytes} bytes downloaded{before}, {seconds:.1} s, {speed:.1} MB/s: {file}")
}
