//! `mesh history`: verifies sealed segments, or imports them into a database.

mod import;
mod verify;

use crate::{
    cli::{HistoryArgs, HistoryCommand},
    failure::Failure,
};

/// Runs the subcommand.
pub(crate) async fn history(args: &HistoryArgs) -> Result<(), Failure> {
    match &args.command {
        HistoryCommand::Verify(args) => verify::verify(args).await,
        HistoryCommand::Import(args) => import::import(args).await,
    }
}
