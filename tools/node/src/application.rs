//! The application of a real consensus node: a process of its own that judges and executes transactions for CometBFT,
//! as the development node does for itself.

use mesh_devnode::{Application, serve_application};
use mesh_problem::error_chain;
use tokio::net::TcpListener;

use crate::{
    config::Config,
    error::{NodeError, failed},
};

/// Runs until `stop`.
pub(super) async fn run(
    config: &Config,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> Result<(), NodeError> {
    let opening = Application::open(config.network.clone(), &config.file, config.checks).await;
    let application = opening.map_err(|error| {
        let error = error_chain(&error);
        failed!("the chain file cannot be opened ({error}); restart the mesh")
    })?;
    tracing::info!(height = *application.heights().borrow(), "the application answers");
    tokio::select! {
        never = serve_application(listener, application) => match never {},
        () = stop => Ok(()),
    }
}
