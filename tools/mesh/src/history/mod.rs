//! `mesh history`: verifies sealed segments, or imports them into a database.

mod import;
mod verify;

use crate::{cli::HistoryCommand, failure::Failure};

pub(crate) async fn history(command: &HistoryCommand) -> Result<(), Failure> {
    match command {
        HistoryCommand::Verify(args) => verify::verify(args).await,
        HistoryCommand::Import(args) => import::import(args).await,
    }
}
