//! The `edge` workload: HTTP in, bus out. It knows operations as data read off the contract, none by name, and
//! has no database.

mod answer;
mod config;
mod connections;
mod gateway;
mod http;
mod listen;
mod metrics;
mod patience;
mod request;
mod routes;

use std::{process::ExitCode, sync::Arc, time::Duration};

use actix::Actor;
use mesh_chassis::{Failure, Running, Setup};

use crate::{config::Config, connections::Connections, gateway::Gateway, routes::Routes};

/// How long the first connections wait for the bus.
const BUS_PATIENCE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    mesh_chassis::run("edge", env!("CARGO_PKG_VERSION"), start)
}

async fn start(setup: Setup<Config>) -> Result<Running, Failure> {
    let config = Arc::new(setup.config);
    let metrics = metrics::Metrics::register(&mut setup.registry.borrow_mut());
    let listeners = listen::listeners(&config)?;
    // On a shared socket another replica takes the connections until this one can answer them; without the bus
    // it says so after a moment.
    let connected = setup.bus.clone();
    let ready = async move {
        let _ = tokio::time::timeout(BUS_PATIENCE, connected.until_connected()).await;
    };
    let gateway =
        Gateway::new(setup.bus, Routes::of_contract(), Arc::clone(&config), metrics.clone()).start();
    let service = http::service(gateway, Arc::clone(&config));
    let connections = Connections::accept(listeners, &service, &config, &metrics, ready);
    Ok(Running::new(|| async { Ok(()) }, move |grace: Duration| connections.drain(grace)))
}
