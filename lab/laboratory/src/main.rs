//! The laboratory: benchmarks and long drills of the mesh. `mesh bench` and `mesh rig` start it.

mod bench;
mod decoder;
mod digests;
mod generated_chain;
mod metrics;
mod private;
mod private_chain;
mod rig;
mod synthetic;
mod table;
mod watches;

use std::process::ExitCode;

use bench::{Baseline, BenchArgs};
use clap::{Parser, Subcommand};
use mesh::failure::Failure;
use rig::args::Options;

/// Benchmarks and drills of a mesh on this machine.
#[derive(Parser)]
#[command(name = "mesh", version, disable_help_subcommand = true)]
struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Subcommand)]
enum Command {
    /// Measures the product on this machine and prints a table
    Bench(BenchArgs),
    /// Runs a drill on a mesh and reports the bars that do not hold
    #[command(subcommand, arg_required_else_help = false, subcommand_value_name = "DRILL")]
    Rig(Options),
    /// Serves the baselines of `bench`
    #[command(hide = true)]
    Baseline {
        /// The baseline to serve
        #[arg(value_enum)]
        kind: Baseline,
    },
    /// Serves a generated chain as a consensus node does
    #[command(hide = true)]
    Chain { args: String },
    /// Decodes blocks on the bus
    #[command(hide = true)]
    Decoder,
}

fn main() -> ExitCode {
    let cli = mesh::command_line::<Cli>();
    Failure::exit(cli.and_then(|cli| cli.map_or(Ok(()), |cli| mesh::block_on(run(cli.command)))))
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Bench(args) => bench::bench(&args).await,
        Command::Rig(options) => rig::run(&options).await,
        Command::Baseline { kind } => bench::baseline::run(kind).await,
        Command::Chain { args } => generated_chain::run(&args).await,
        Command::Decoder => decoder::run().await,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }
}
