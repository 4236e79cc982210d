//! `mesh history`: sealed segments checked, or put back into a database.

mod import;
mod verify;

use crate::{
    cli::{HistoryArgs, HistoryCommand},
    failure::Failure,
};

/// Does what was asked for.
pub(crate) async fn history(args: &HistoryArgs) -> Result<(), Failure> {
    match &args.command {
        HistoryCommand::Verify(args) => verify::verify(args).await,
        HistoryCommand::Import(args) => import::import(args).await,
    }
}
