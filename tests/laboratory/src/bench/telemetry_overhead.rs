//! Section "telling": the overhead of telemetry: reads of single rows with metrics and traces sent to a
//! collector at default settings, compared with none.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
    terminal::print_line,
};
use tokio::task::JoinHandle;
use warp::Filter;

use super::{
    Section,
    bar::{Bar, Bound},
    baseline,
    comparison::{self, Side},
    load::{Load, Requests},
    point::section,
    withdrawals,
};
use crate::private::{PrivateMesh, Servers, UNCACHED_EDGE};

const CONNECTIONS: u64 = 32;
/// Process names of the services with telemetry.
const PROCESSES: [&str; 2] = ["edge-telling", "query-telling"];

/// Runs the comparison.
pub(super) async fn measure(
    mesh: &PrivateMesh,
    servers: &Servers,
    edge: SocketAddr,
    length: Duration,
) -> Result<Section, Failure> {
    print_line("reading single rows, with telemetry and without");
    let collector = Collector::start().await?;
    let variables = [
        ("MESH_BUS_PREFIX", "telling".to_owned()),
        ("MESH_EDGE_CACHE_BYTES", "0".to_owned()),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collector.address)),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    let with_telemetry = mesh
        .start_pair(servers, PROCESSES, variables.into_iter().chain([baseline::points()]).collect())
        .await?;
    let paths = withdrawals::paths(servers, withdrawals::ROWS).await?;
    let side = |name, address, processes: &[&str]| Side {
        name,
        load: Load {
            address,
            requests: Requests::Paths(paths.clone()),
            connections: CONNECTIONS,
            length,
            period: None,
        },
        processes: mesh.watch(processes),
    };
    let sides = vec![
        side("with telemetry", with_telemetry, &[PROCESSES[0], NATS, PROCESSES[1], POSTGRES]),
        side("without", edge, &[UNCACHED_EDGE, NATS, "query", POSTGRES]),
    ];
    let outcomes = comparison::run_rounds(sides).await?;
    let (pushes, spent) =
        (collector.pushes.load(Ordering::Relaxed), |side: usize| outcomes.get(side)?.cpu_us());
    let (Some(with), Some(without)) = (spent(0), spent(1)) else {
        return Err(Failure::failed("what processes cost is not known here"));
    };
    if pushes == 0 {
        return Err(Failure::failed("nothing was told to the collector"));
    }
    let bar = Bar {
        what: format!("with telemetry / without, CPU time of a request ({pushes} pushes)"),
        found: with / without,
        bound: Bound::AtMost(1.05),
        aim: 1.02,
    };
    let title = format!("telling: {} withdrawals by id, {CONNECTIONS} connections", withdrawals::ROWS);
    Ok(section("telling", &title, &outcomes, &bar))
}

/// An OTLP collector that discards everything. Its processor time is not part of either side.
struct Collector {
    address: SocketAddr,
    pushes: Arc<AtomicU64>,
    serving: JoinHandle<()>,
}

impl Collector {
    async fn start() -> Result<Self, Failure> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(|error| cannot("listen", &error))?;
        let address = listener.local_addr().map_err(|error| cannot("listen", &error))?;
        let pushes = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&pushes);
        let take = warp::post().and(warp::body::bytes()).map(move |_: Bytes| {
            counted.fetch_add(1, Ordering::Relaxed);
            warp::reply()
        });
        let serving = tokio::spawn(warp::serve(take).incoming(listener).run());
        Ok(Self { address, pushes, serving })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
