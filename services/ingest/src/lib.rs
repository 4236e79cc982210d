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
mod row_filler;
mod standing;

use std::{process::ExitCode, rc::Rc};

use actix::{Actor, AsyncContext};
pub use block::{Cell, DecodedBlock, FetchedBlock, NO_TX_HASH, Row, read_time};
pub use decode::{DecodeError, Decoder, EVENT_PREFIX, StatedRow};
use mesh_bus::NodeStatus;
use mesh_chassis::{Failure, Service, Setup};

use crate::{config::Config, ingest::Ingest, metrics::Metrics};

/// Runs the workload until SIGTERM or SIGINT.
pub fn main() -> ExitCode {
    mesh_chassis::run(mesh_chassis::program!("ingest"), start)
}

async fn start(setup: Setup<Config>) -> Result<Service, Failure> {
    let Setup { config, bus, registry } = setup;
    let lag = config.lag;
    let metrics = Metrics::register(&mut registry.borrow_mut());
    let ingest = Ingest::new(config, bus.clone(), metrics)?;
    let standing = Rc::clone(&ingest.standing);
    let announcements = bus.subscribe::<NodeStatus>().await?;
    Ingest::create(|context| {
        context.add_stream(announcements);
        ingest
    });
    let ready = move || {
        let standing = standing.borrow();
        let (store, node) = standing.heights;
        std::future::ready(standing.check().and_then(|()| lag.check(node, store)))
    };
    // A transaction that is under way is rolled back and repeated by the next process.
    Ok(Service::new(ready, |_| std::future::ready(())))
}
