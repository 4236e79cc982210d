//! The one command line: starts a mesh, drives it, loads and downloads data, runs what CI runs.

mod bench;
mod cli;
mod devnode;
mod doctor;
mod drill;
mod export;
mod failure;
mod group;
mod history;
mod load;
mod metrics;
mod migrate;
mod open_files;
mod private;
mod private_node;
mod progress;
mod rig;
mod seal;
mod signals;
mod synthetic;
mod table;
mod test;
mod tx;
mod up;

use std::process::ExitCode;

use cli::Command;
use failure::Failure;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.code)
        }
    }
}

fn run() -> Result<(), Failure> {
    let Some(cli) = cli::read()? else { return Ok(()) };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(
            |error| Failure::failed(format!("cannot start ({error}); raise the limit of threads")),
        )?;
    let outcome = runtime.block_on(async {
        match cli.command {
            Command::Up(args) => up::up(*args).await,
            Command::Ps(args) => drill::ps(&args).await,
            Command::Stop(args) => drill::stop(args).await,
            Command::Start(args) => drill::start(args).await,
            Command::Restart(args) => drill::restart(args).await,
            Command::Scale(args) => drill::scale(args).await,
            Command::Load(args) => load::load(&args).await,
            Command::Migrate(args) => migrate::run(&args).await,
            Command::Node(args) => up::node::node(*args).await,
            Command::Seal(args) => seal::seal(&args).await,
            Command::History(args) => history::history(&args).await,
            Command::Export(args) => export::export(args).await,
            Command::Tx(args) => tx::tx(args).await,
            Command::Doctor(args) => doctor::doctor(&args).await,
            Command::Completions(args) => {
                args.print();
                Ok(())
            }
            Command::Bench(args) => bench::bench(&args).await,
            Command::Rig(args) => rig::rig(&args).await,
            Command::Test => test::test().await,
            Command::Devnode => devnode::run().await,
            Command::Application => devnode::run_application().await,
            Command::Baseline(args) => bench::baseline::run(args.kind).await,
        }
    });
    // A blocking call that is still under way, such as one of the package manager, is not waited for.
    runtime.shutdown_background();
    outcome
}
