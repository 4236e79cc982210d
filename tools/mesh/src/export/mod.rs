//! `mesh export`: brings a table of the sealed history home. What is fetched lies in a `.part` file until
//! length and checksum are right; a later call goes on where this one ends.

pub(crate) mod args;
mod fetch;
mod heights;
mod patience;
mod progress;
mod sink;
pub(crate) mod source;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::Serialize;

use self::{
    args::{ExportArgs, Height},
    fetch::{Fetch, Fetched, Kept},
    heights::{named, snapped},
    progress::size,
    sink::{Paths, plain_name},
    source::{Source, Wanted},
};
use crate::{failure::Failure, signals::Signals, terminal::print_line};

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Outcome<'a> {
    file: &'a Path,
    table: &'a str,
    from_block: u64,
    to_block: u64,
    bytes: u64,
    /// When the gateway tells.
    rows: Option<u64>,
    etag: &'a str,
    /// Eight hex digits.
    crc32c: String,
    seconds: f64,
    /// Bytes that an earlier call had left and that were of use.
    resumed_from: u64,
}

/// Downloads a table.
pub(crate) async fn export(args: ExportArgs) -> Result<(), Failure> {
    let mut signals = Signals::watch()?;
    let kept = Kept::default();
    let outcome = tokio::select! {
        outcome = download(&args, &kept) => outcome,
        () = signals.stop() => Err(Failure::failed("stopped")),
    };
    outcome.map_err(|failure| kept.told_with(failure))
}

async fn download(args: &ExportArgs, kept: &Kept) -> Result<(), Failure> {
    let start = Instant::now();
    let out = args.output.as_deref() == Some(Path::new("-"));
    if out && args.json {
        return Err(Failure::usage("--json has no room beside the file; name a file with -o"));
    }
    if let Some(file) = args.output.as_deref().filter(|output| !out && !is_folder(output)) {
        Paths::of(file.to_owned(), args.force)?;
    }
    let source = Source::new(&args.url, Duration::from_secs(args.patience.into()))?;
    let mut fetch = Fetch::new(&source, args.retries, kept);
    let wanted = wanted(args, &mut fetch).await?;
    let place = |offered: Option<&str>| match out {
        true => Ok(None),
        false => Paths::of(place(args, &wanted, offered), args.force).map(Some),
    };
    let fetched = fetch.run(&wanted, place, args.force).await?;
    let seconds = start.elapsed().as_secs_f64();
    match &fetched.file {
        Some(file) if args.json => print(&json(&wanted, &fetched, file, seconds)?),
        Some(file) => print(&summary(&fetched, &file.display().to_string(), seconds)),
        None => print_line(&summary(&fetched, "standard output", seconds)),
    }
    Ok(())
}

/// The blocks meant. Only names and `--snap` need the list of segments.
async fn wanted(args: &ExportArgs, fetch: &mut Fetch<'_>) -> Result<Wanted, Failure> {
    let is_number = |height| matches!(height, Height::At(_));
    let plain = is_number(args.from_block) && is_number(args.to_block) && !args.snap;
    let held = if plain { Vec::new() } else { fetch.segments().await? };
    let asked = named(args.from_block, args.to_block, &held).map_err(Failure::failed)?;
    if asked.0 > asked.1 {
        let (from, to) = asked;
        return Err(Failure::usage(format!(
            "--from-block {from} is greater than --to-block {to}; swap them"
        )));
    }
    let taken = if args.snap { snapped(asked, &held) } else { asked };
    if taken != asked {
        print_line(&format!("taking blocks {}-{} instead of {}-{}", taken.0, taken.1, asked.0, asked.1));
    }
    Ok(Wanted { table: args.table, from: taken.0, to: taken.1 })
}

/// The file's name: as asked for, else in the folder asked for, as the gateway calls it.
fn place(args: &ExportArgs, wanted: &Wanted, offered: Option<&str>) -> PathBuf {
    let name = || {
        let own = || format!("{}-{}-{}.zip", args::short(wanted.table.as_str_name()), wanted.from, wanted.to);
        offered.and_then(plain_name).unwrap_or_else(own)
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

fn json(wanted: &Wanted, fetched: &Fetched, file: &Path, seconds: f64) -> Result<String, Failure> {
    let outcome = Outcome {
        file,
        table: wanted.table.as_str_name(),
        from_block: wanted.from,
        to_block: wanted.to,
        bytes: fetched.offer.bytes,
        rows: fetched.offer.rows,
        etag: &fetched.offer.etag,
        crc32c: format!("{:08x}", fetched.offer.crc32c),
        seconds,
        resumed_from: fetched.resumed_from,
    };
    serde_json::to_string(&outcome).map_err(|error| Failure::failed(error.to_string()))
}

fn summary(fetched: &Fetched, file: &str, seconds: f64) -> String {
    let bytes = fetched.offer.bytes;
    let rows = fetched.offer.rows.map(|rows| format!("{rows} rows, ")).unwrap_or_default();
    let before = match fetched.resumed_from {
        0 => String::new(),
        before => format!(", {} of them before", size(before as f64)),
    };
    let speed = bytes.saturating_sub(fetched.resumed_from) as f64 / seconds.max(1e-9) / 1e6;
    format!("{rows}{bytes} bytes{before}, {seconds:.1} s, {speed:.1} MB/s: {file}")
}

fn print(line: &str) {
    // Whoever closed the pipe has read enough.
    let _ = writeln!(io::stdout(), "{line}");
}
