//! Options of `ingest`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, builder::NonEmptyStringValueParser};

use crate::cli::{HomeArgs, node_url, postgres_url};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  mesh ingest record --node URL --from 1 --to 100 -o blocks.jsonl
  mesh ingest decode --blocks blocks.jsonl            the rows of recorded blocks
  mesh ingest decode --node URL --height 7 --decoder events
  mesh ingest check --blocks 1000                     compares stored blocks with the node's
  indexer | mesh ingest rows - --postgres URL --chain my-chain")]
pub(crate) enum IngestCommand {
    /// Prints the rows of blocks as JSON lines and stores nothing
    Decode(DecodeArgs),
    /// Saves blocks with their results as JSON lines
    Record(RecordArgs),
    /// Fetches and decodes stored blocks again and compares their rows; exit code 1 when rows differ
    Check(CheckArgs),
    /// Stores blocks with rows of another program, from JSON lines
    Rows(RowsArgs),
}

/// Which mesh or which servers.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The RPC of the consensus node [default: that of the mesh that runs in the home]
    #[arg(long, value_name = "URL", value_parser = node_url)]
    pub(crate) node: Option<String>,
    /// The decoder [default: that of the mesh that runs in the home, else events]
    #[arg(long, value_enum)]
    pub(crate) decoder: Option<DecoderArg>,
}

/// The decoders that need no service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecoderArg {
    /// The built-in one
    Events,
}

#[derive(Debug, Args)]
pub(crate) struct DecodeArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The height of the block at the node
    #[arg(long, value_name = "H", required_unless_present = "blocks", conflicts_with = "blocks")]
    pub(crate) height: Option<u64>,
    /// The file of recorded blocks; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) blocks: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The first height
    #[arg(long, value_name = "A")]
    pub(crate) from: u64,
    /// The last height
    #[arg(long, value_name = "B")]
    pub(crate) to: u64,
    /// The file to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The database [default: that of the mesh that runs in the home]
    #[arg(long, value_name = "URL", value_parser = postgres_url)]
    pub(crate) postgres: Option<String>,
    /// Number of blocks to compare
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) blocks: u64,
    /// Chooses the blocks
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct RowsArgs {
    /// The file of the lines; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The database [default: that of the mesh that runs in the home]
    #[arg(long, value_name = "URL", value_parser = postgres_url)]
    pub(crate) postgres: Option<String>,
    /// The name of the chain of an empty database
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) chain: Option<String>,
}
