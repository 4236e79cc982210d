//! The command line `mesh`: starts a mesh, controls it, loads and downloads data, runs the steps of CI. It is
//! a library, because the laboratory (drills and benchmarks) starts servers with the same code.

mod cli;
mod command_line;
mod control;
mod dist;
mod doctor;
mod events;
mod export;
pub mod failure;
mod gateway;
mod get;
mod history;
mod ingest;
mod keys;
mod load;
mod migrate;
mod pause;
pub mod processes;
pub mod programs;
mod proxy;
mod seal;
pub mod signals;
pub mod terminal;
mod test;
mod tx;
pub mod up;
mod watch;
mod zip;

use std::process::ExitCode;

use cli::{Cli, Command, ControlArgs, Count, HistoryCommand, Target, completions};
pub use command_line::command_line;
use failure::{Failure, failed};
use mesh_launcher::control::Request;

/// Runs the command that the arguments of this process name.
pub fn run() -> ExitCode {
    Failure::exit(
        command_line::<Cli>().and_then(|cli| cli.map_or(Ok(()), |cli| block_on(command(cli.command)))),
    )
}

/// Runs a future to its end on a new tokio runtime with two worker threads.
pub fn block_on(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    mesh_chassis::install_tls_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| failed!("cannot start ({error}); raise the limit of threads"))?;
    let outcome = runtime.block_on(work);
    // A blocking call that is still under way, such as one of the package manager, is not waited for.
    runtime.shutdown_background();
    outcome
}

async fn command(command: Command) -> Result<(), Failure> {
    match command {
        Command::Up(args) => up::up(*args).await,
        Command::Down(home) => control::down(&home).await,
        Command::Ps { home, json } => control::ps(&home, json).await,
        Command::Stop(ControlArgs { target: Target { name, replica }, home }) => {
            control::order(&home, &Request::Stop { name, replica }).await
        }
        Command::Start(ControlArgs { target: Target { name, replica }, home }) => {
            control::order(&home, &Request::Start { name, replica }).await
        }
        Command::Restart { name, home } => control::order(&home, &Request::Restart { name }).await,
        Command::Scale { count: Count { service, replicas }, home } => {
            control::order(&home, &Request::Scale { name: service.to_owned(), replicas }).await
        }
        Command::Load { folder, postgres, history } => {
            migrate::migrate_named(&postgres, history.as_deref()).await?;
            load::load_into(&postgres, &folder).await
        }
        Command::Migrate { database, history } => migrate::run(&database.url()?, history.as_deref()).await,
        Command::Node(args) => up::node::node(*args).await,
        Command::Ingest(command) => ingest::ingest(command).await,
        Command::Seal(args) => seal::seal(&args).await,
        Command::History(HistoryCommand::Verify(args)) => history::verify(&args).await,
        Command::History(HistoryCommand::Import(args)) => history::import(&args).await,
        Command::Export(args) => export::export(args).await,
        Command::Tx(command) => tx::tx(command).await,
        Command::Get(args) => get::get(args).await,
        Command::Watch(args) => watch::watch(args).await,
        Command::Keys(command) => keys::keys(command).await,
        Command::Doctor(args) => doctor::doctor(&args).await,
        Command::Completions { shell } => {
            terminal::print(String::from_utf8_lossy(&completions(shell)).trim_end())
        }
        Command::Dist { out } => dist::dist(out),
        Command::Bench(args) => programs::run_laboratory("bench", args),
        Command::Rig(args) => programs::run_laboratory("rig", args),
        Command::Test { program, filters } => test::test(program.as_deref(), &filters).await,
        Command::Update => test::update().await,
        Command::Devnode => {
            init_node_log();
            Ok(mesh_node::run_devnode(signals::watch()?.stop()).await?)
        }
        Command::Application => {
            init_node_log();
            Ok(mesh_node::run_application(signals::watch()?.stop()).await?)
        }
    }
}

/// A consensus node's process logs to standard error.
fn init_node_log() {
    let log = tracing_subscriber::fmt().json().with_writer(std::io::stderr);
    // Reporting a line that cannot be written, to the same place, would panic.
    log.log_internal_errors(false).with_max_level(tracing::Level::INFO).init();
}
