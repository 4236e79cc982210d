//! `mesh ingest`: decodes, records and checks blocks of a consensus node, and stores blocks that another program
//! has made.

pub(crate) mod args;
mod check;
mod place;
mod recorded;
mod rows;

use args::{IngestArgs, IngestCommand};

use crate::failure::Failure;

/// Runs the subcommand.
pub(crate) async fn ingest(args: IngestArgs) -> Result<(), Failure> {
    match args.command {
        IngestCommand::Decode(args) => recorded::decode(&args).await,
        IngestCommand::Record(args) => recorded::record(&args).await,
        IngestCommand::Check(args) => check::check(&args).await,
        IngestCommand::Rows(args) => rows::rows(args).await,
    }
}
