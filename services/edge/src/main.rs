//! The `edge` workload: accepts HTTP and gRPC, and calls the services over the bus. Operations are data of the
//! contract; none is named here. The edge has no database.
//!
//! A request enters the folders in this order: `wire`, `admission`, `route`, `decode`, `ask`, `respond`;
//! `grpc` takes the place of `route` for calls over gRPC.

mod access_log;
mod admission;
mod ask;
mod client_address;
mod config;
mod connection;
mod decode;
mod file_follower;
mod gateway;
mod grpc;
mod grpc_kind;
mod http_call;
mod keys;
mod metrics;
mod respond;
mod route;
mod service;
mod trace;
mod unread_body;
mod watch;
mod web_socket;
mod wire;

use std::{process::ExitCode, sync::Arc, time::Duration};

use actix::Actor;
use mesh_bus::Bus;
use mesh_chassis::{Failure, LogQueue, Service, Setup};
use tokio::{sync, time};

use crate::{
    access_log::AccessLog,
    admission::{Admission, open_files},
    ask::{
        backend::Backend,
        cache::{self, Cache},
        heads::ChainHeads,
    },
    config::{AccessLogMode, Config},
    gateway::{Gateway, GatewayState},
    grpc::standard::Grpc,
    keys::{Keys, edges::LiveEdges, usage::Usage},
    metrics::Metrics,
    respond::answer,
    route::{pages, routes::Routes, status::MeshStatus},
    service::HttpService,
    watch::registry::Watches,
    wire::{
        listen,
        server::{Server, ServerParts},
        tls::Tls,
    },
};

/// Submissions that still wait are answered this long before the shutdown grace ends.
const SUBMISSION_RESERVE: Duration = Duration::from_millis(500);

/// Longest wait for the bus before connections are accepted.
const BUS_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    mesh_chassis::run(mesh_chassis::program!("edge"), start)
}

async fn start(setup: Setup<Config>) -> Result<Service, Failure> {
    let Setup { mut config, bus, registry } = setup;
    config.limits.connections = open_files::connections(config.limits.connections);
    let config = Arc::new(config);
    let metrics = Metrics::register(&mut registry.borrow_mut(), config.url_scheme());
    let tls = config.tls.clone().map(|files| Tls::start(files, metrics.clone())).transpose()?;
    let listeners = listen::listeners(&config)?;
    let heads = Arc::new(ChainHeads::default());
    heads.follow(&bus).await?;
    let cache = Arc::new(Cache::new(config.cache_bytes, Arc::clone(&heads)));
    cache::spawn_eviction(&cache);
    bus.register_metrics(&mut registry.borrow_mut());
    let (stop_waiting, stopping) = sync::watch::channel(false);
    let backend = Arc::new(Backend::new(
        bus.clone(),
        Arc::clone(&heads),
        Arc::clone(&cache),
        &metrics,
        answer::base_headers(&config),
        &config,
        stopping,
    ));
    let watches = Watches::new(Arc::clone(&backend), Arc::clone(&heads), &config, &metrics);
    let routes = Routes::of_contract(pages::all(&config));
    let access_log = match config.access_log {
        AccessLogMode::Off => None,
        mode => AccessLog::new(mode, LogQueue::start(metrics.log_dropped.clone())?, Arc::clone(&routes)),
    };
    let keys = follow_keys(&config, &bus, &metrics).await?;
    let admission = Arc::new(Admission::new(&config, keys, Arc::clone(&routes), &metrics));
    let gateway = GatewayState {
        backend,
        watches: Arc::clone(&watches),
        status: MeshStatus::new(bus.clone(), Arc::clone(&heads)),
        routes: Arc::clone(&routes),
        admission: Arc::clone(&admission),
        config: Arc::clone(&config),
        metrics: metrics.clone(),
    };
    let gateway = Gateway::new(gateway).start();
    let grpc =
        Grpc::start(gateway.clone(), bus.clone(), routes, Arc::clone(&admission), metrics.clone()).await?;
    let parts = ServerParts {
        service: HttpService::new(gateway, cache, Arc::clone(&config)),
        grpc: Arc::clone(&grpc),
        admission: Arc::clone(&admission),
        limits: config.limits,
        metrics,
        access_log,
        tls,
        is_anonymous_allowed: config.is_anonymous_allowed,
    };
    let server = Server::start(listeners, parts, until_connected(bus))?;
    let lag = config.lag;
    let is_ready = move || std::future::ready(lag.check(heads.node(), heads.store()));
    Ok(Service::new(is_ready, move |grace: Duration| async move {
        tokio::spawn(async move {
            time::sleep(grace.saturating_sub(SUBMISSION_RESERVE)).await;
            stop_waiting.send_replace(true);
        });
        admission.leave().await;
        watches.drain(grace);
        grpc.stop().await;
        server.drain(grace).await;
        admission.finish().await;
    }))
}

/// Resolves once the bus is connected or the timeout has passed; the edge then answers 503. Replicas that share a
/// socket accept until this one does.
async fn until_connected(bus: Bus) {
    let _ = time::timeout(BUS_CONNECT_TIMEOUT, bus.until_connected()).await;
}

/// Follows the file of keys, if there is one.
async fn follow_keys(config: &Config, bus: &Bus, metrics: &Metrics) -> Result<Option<Keys>, Failure> {
    let Some(file) = config.keys_file.clone() else { return Ok(None) };
    let (edges, usage) = (LiveEdges::start(bus.clone()).await?, Usage::start(bus.clone()));
    let keys = Keys::start(file, edges, usage, metrics.clone());
    Ok(Some(keys.map_err(|error| format!("MESH_EDGE_KEYS_FILE: {error}"))?))
}
