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

fn main() -> ExitCode {
    mesh_chassis::run("edge", env!("CARGO_PKG_VERSION"), start)
}

async fn start(setup: Setup<Config>) -> Result<Running, Failure> {
    let config = Arc::new(setup.config);
    let metrics = metrics::Metrics::register(&mut setup.registry.borrow_mut());
    let listeners = listen::listeners(&config)?;
    let gateway = Gateway::new(setup.bus, Routes::of_contract(), Arc::clone(&config), metrics.clone()).start();
    let service = http::service(gateway, Arc::clone(&config));
    let connections = Connections::accept(listeners, &service, &config, &metrics);
    Ok(Running::new(|| async { Ok(()) }, move |grace: Duration| connections.drain(grace)))
}
