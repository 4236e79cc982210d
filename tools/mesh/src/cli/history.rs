//! Options of the commands about sealed history.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{HomeArgs, postgres_url};

#[derive(Debug, Args)]
pub(crate) struct SealArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Seal this database instead of that of the home
    #[arg(long, value_name = "URL", value_parser = postgres_url)]
    pub(crate) postgres: Option<String>,
    /// Write the segments to segments/ below this folder or file: URL instead of the home
    #[arg(long, value_name = "URL")]
    pub(crate) history: Option<String>,
    /// Blocks of a segment [default: as the mesh of the home does, else 1000]
    #[arg(long, value_name = "BLOCKS", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub(crate) interval: Option<u32>,
    /// Also close the running span at the newest block
    #[arg(long)]
    pub(crate) newest: bool,
    /// Print a JSON array of the sealed segments
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// Checks every byte of every segment, its blocks, and the chain of the segments
    Verify(VerifyArgs),
    /// Loads all segments, or the missing ones, into a database
    Import(ImportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A home, or the folder of the segments
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The chain whose segments are verified [default: the one with most segments]; files of other chains are listed
    #[arg(long, value_name = "ID")]
    pub(crate) chain: Option<String>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// A home, or the folder of the segments
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The database, empty or with the beginning of the same history; it is migrated first
    #[arg(long, value_name = "URL", value_parser = postgres_url)]
    pub(crate) postgres: String,
    /// The database's own history, whose running span is sealed before a migration that changes exports
    #[arg(long, value_name = "URL")]
    pub(crate) history: Option<String>,
    /// Print a JSON array of the segments
    #[arg(long)]
    pub(crate) json: bool,
}
