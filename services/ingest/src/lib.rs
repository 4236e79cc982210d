//! The `ingest` workload: follows a consensus node by height and writes the rows of its blocks into the store.
//!
//! A library, so that the command line can decode and check blocks with the same code.

mod block;
mod config;
mod decode;
mod failure;
mod ingest;
mod metrics;
pub mod node;
pub mod order;
mod standing;

use std::{cell::RefCell, process::ExitCode, rc::Rc};

use actix::{Actor, AsyncContext};
pub use block::{Cell, DecodedBlock, FetchedBlock, NO_TX_HASH, Row};
pub use decode::{DecodeError, Decoder, EVENT_PREFIX, StatedRow};
use mesh_bus::NodeStatus;
use mesh_chassis::{Failure, Service, Setup};

use crate::{
    config::{Config, DecoderKind},
    ingest::{Ingest, Parts},
    metrics::Metrics,
    node::Nodes,
    order::Order,
    standing::Standing,
};

/// Runs the workload until SIGTERM or SIGINT.
pub fn main() -> ExitCode {
    mesh_chassis::run(mesh_chassis::program!("ingest"), start)
}

async fn start(setup: Setup<Config>) -> Result<Service, Failure> {
    let Config { database_url, nodes, lag, decoder, order, skip, sampling } = setup.config;
    let bus = setup.bus;
    let decoder = match decoder {
        DecoderKind::Events(prefix) => Decoder::Events(prefix),
        DecoderKind::Nats => Decoder::Service(bus.clone()),
    };
    let metrics = Metrics::register(&mut setup.registry.borrow_mut());
    let order = Order::new(order);
    let standing = Standing { state: order.check(), heights: order.heights(), store_began: None };
    let standing = Rc::new(RefCell::new(standing));
    let nodes = Nodes::new(nodes)?;
    let parts = Parts {
        bus: bus.clone(),
        order,
        database_url,
        nodes,
        decoder,
        skip,
        sampling,
        metrics,
        standing: Rc::clone(&standing),
    };
    let announcements = bus.subscribe::<NodeStatus>().await?;
    Ingest::create(|context| {
        context.add_stream(announcements);
        Ingest::new(parts)
    });
    let ready = move || {
        let standing = standing.borrow();
        let (store, node) = standing.heights;
        std::future::ready(standing.check().and_then(|()| lag.check(node, store)))
    };
    // A transaction that is under way is rolled back and repeated by the next process.
    Ok(Service::new(ready, |_| std::future::ready(())))
}
