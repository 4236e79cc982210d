//! The `edge` workload: HTTP and gRPC in, bus out. It knows operations as data read off the contract, none by name, and
//! has no database.

mod access;
mod address;
mod answer;
mod asking;
mod body;
mod cache;
mod chunk_form;
mod config;
mod connection;
mod connections;
mod counts;
mod download;
mod exports;
mod files;
mod flights;
mod gateway;
mod grpc;
mod guard;
mod gzip;
mod heads;
mod host;
mod hot;
mod http;
mod limits;
mod listen;
mod metrics;
mod now;
mod pages;
mod patience;
mod range;
mod rate;
mod request;
mod room;
mod routes;
mod trace;
mod turned_away;
mod visit;

use std::{process::ExitCode, sync::Arc, time::Duration};

use actix::Actor;
use mesh_chassis::{Failure, LogQueue, Service, Setup};
use tokio::sync::watch;

use crate::{
    access::{AccessLog, Wanted},
    asking::Asking,
    cache::Cache,
    config::Config,
    connections::Connections,
    gateway::Gateway,
    grpc::Grpc,
    heads::Heads,
    hot::Hot,
    now::Now,
    routes::Routes,
};

/// How long before the end of a stop's grace submissions that wait are answered.
const LAST_CALL: Duration = Duration::from_millis(500);

/// How long the first connections wait for the bus.
const BUS_PATIENCE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    mesh_chassis::run("edge", env!("CARGO_PKG_VERSION"), start)
}

async fn start(setup: Setup<Config>) -> Result<Service, Failure> {
    let mut config = setup.config;
    config.limits.connections = files::connections(config.limits.connections);
    let config = Arc::new(config);
    let metrics = metrics::Metrics::register(&mut setup.registry.borrow_mut());
    let listeners = listen::listeners(&config)?;
    // On a shared socket another replica takes the connections until this one can answer them; without the bus
    // it says so after a moment.
    let connected = setup.bus.clone();
    let ready = async move {
        let _ = tokio::time::timeout(BUS_PATIENCE, connected.until_connected()).await;
    };
    let heads = Arc::new(Heads::default());
    heads.follow(&setup.bus).await?;
    let cache = Arc::new(Cache::new(config.cache_bytes, Arc::clone(&heads)));
    cache::tidy(&cache);
    setup.bus.register_metrics(&mut setup.registry.borrow_mut());
    let (last_call, heard) = watch::channel(false);
    let asking =
        Asking::new(setup.bus.clone(), Arc::clone(&heads), Arc::clone(&cache), &metrics, &config, heard);
    let routes = Routes::of_contract(pages::all(&config)?);
    let access = match config.access_log {
        Wanted::Off => None,
        wanted => AccessLog::new(wanted, LogQueue::start(metrics.log_dropped.clone())?, routes.clone()),
    };
    let now = Now::new(setup.bus.clone(), Arc::clone(&heads));
    let gateway = Gateway::new(asking, now, routes, Arc::clone(&config), metrics.clone()).start();
    let grpc = Grpc::new(gateway.clone(), setup.bus, metrics.clone())?;
    let service = Hot::new(http::service(gateway, Arc::clone(&config)), cache, Arc::clone(&config));
    let connections =
        Connections::accept(listeners, service, &grpc, &config, &metrics, access.as_ref(), ready);
    let lag = config.lag;
    let is_ready = move || std::future::ready(lag.check(heads.node(), heads.store()));
    Ok(Service::new(is_ready, move |grace: Duration| async move {
        tokio::spawn(async move {
            tokio::time::sleep(grace.saturating_sub(LAST_CALL)).await;
            last_call.send_replace(true);
        });
        grpc.stop().await;
        connections.drain(grace).await;
    }))
}
