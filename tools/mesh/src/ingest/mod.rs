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

/// Opens a file of lines; `-` is standard input.
fn open(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    match path.as_os_str() == "-" {
        true => Ok(Box::new(BufReader::new(io::stdin()))),
        false => Ok(Box::new(BufReader::new(File::open(path)?))),
    }
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
