//! `mesh ingest`: decodes, records and checks blocks of a consensus node, and stores blocks that another program
//! has made.

pub(crate) mod args;
mod check;
mod place;
mod recorded;
mod rows;

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use args::IngestCommand;

use crate::failure::Failure;

/// The lines of a file, without a byte order mark before the first one; `-` is standard input.
fn lines(path: &Path) -> io::Result<Box<dyn Iterator<Item = io::Result<String>> + Send>> {
    let input: Box<dyn BufRead + Send> = match path.as_os_str() == "-" {
        true => Box::new(BufReader::new(io::stdin())),
        false => Box::new(BufReader::new(File::open(path)?)),
    };
    let lines = input.lines().enumerate();
    Ok(Box::new(lines.map(|(index, line)| match line {
        Ok(line) if index == 0 => Ok(line.trim_start_matches('\u{feff}').to_owned()),
        line => line,
    })))
}

/// The error of a line of JSON, without the number of the line: its place in the file is named beside it.
fn json_fault(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

pub(crate) async fn ingest(command: IngestCommand) -> Result<(), Failure> {
    match command {
        IngestCommand::Decode(args) => recorded::decode(&args).await,
        IngestCommand::Record(args) => recorded::record(&args).await,
        IngestCommand::Check(args) => check::check(&args).await,
        IngestCommand::Rows(args) => rows::rows(args).await,
    }
}
