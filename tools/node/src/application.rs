//! The application of a real consensus node: a process of its own that judges transactions for CometBFT and
//! writes the blocks that it decides into the store, as the development node writes its own.

use mesh_devnode::{Application, serve_application};
use mesh_problem::error_chain;
use tokio::{net::TcpListener, sync::watch};

use crate::{
    config::Config,
    error::{NodeError, failed},
    follow, grow,
};

/// Runs until `stop`. Retries while the database is unreachable; the node goes on meanwhile.
pub(super) async fn run(
    config: &Config,
    listener: TcpListener,
    mut stop: impl Future<Output = ()> + Unpin,
) -> Result<(), NodeError> {
    let begun = tokio::select! {
        begun = follow::read_store(config) => begun,
        () = &mut stop => return Ok(()),
    };
    let opening =
        Application::open(config.network(begun.chain_id), &config.file, config.checks, begun.rules).await;
    let application = opening.map_err(|error| {
        let error = error_chain(&error);
        failed!("the file of the blocks cannot be opened ({error}); start the mesh anew")
    })?;
    tracing::info!(height = *application.heights().borrow(), "the application answers");
    let written = watch::Sender::new(());
    let new_blocks = written.subscribe();
    tokio::select! {
        never = serve_application(listener, application.clone()) => match never {},
        never = follow::follow_rules(config, &application, new_blocks) => match never {},
        outcome = grow::write(config, Some(&application), stop, &written) => outcome,
    }
}
