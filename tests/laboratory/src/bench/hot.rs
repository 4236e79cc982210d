//! Section "hot": repeated reads of a hundred rows, while a block a second makes the edge's cache stale,
//! compared with a minimal warp server.

use std::{net::SocketAddr, time::Duration};

use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
    terminal::print_line,
};
use tokio::time::{MissedTickBehavior, interval};

use super::{
    Section,
    bar::{Bar, Bound},
    comparison::{self, Side},
    load::{Load, Requests},
    point::section,
    withdrawals,
};
use crate::{
    bench::args::Baseline,
    private::{PrivateMesh, Servers},
};

const CONNECTIONS: u64 = 32;
const ROWS: u64 = 100;
const BLOCK_PERIOD: Duration = Duration::from_secs(1);

/// Compares the edge with a warp server that answers a constant.
pub(super) async fn measure(
    mesh: &PrivateMesh,
    servers: &Servers,
    edge: SocketAddr,
    length: Duration,
) -> Result<Section, Failure> {
    let hello = ["/hello".to_owned()];
    let one = mesh.start_baseline(servers, Baseline::Hello, "hello", &hello[0]).await?;
    let more = mesh.start_baseline(servers, Baseline::HelloThreads, "hello-threads", &hello[0]).await?;
    print_line("reading a hundred rows again and again");
    let hot = withdrawals::paths(servers, ROWS).await?;
    let side = |name, address, paths: &[String], processes: &[&str]| Side {
        name,
        load: Load {
            address,
            requests: Requests::Paths(paths.into()),
            connections: CONNECTIONS,
            length,
            period: None,
        },
        processes: mesh.watch(processes),
    };
    let sides = vec![
        side("mesh, 1 thread", edge, &hot, &["edge", NATS, "query", POSTGRES]),
        side("warp hello, 1 thread", one, &hello, &["hello"]),
        side("warp hello, 2 threads", more, &hello, &["hello-threads"]),
    ];
    let outcomes = tokio::select! {
        outcomes = comparison::run_rounds(sides) => outcomes?,
        failed = write_blocks(servers) => return Err(failed),
    };
    let [product, hello, ..] = &outcomes[..] else {
        return Err(Failure::failed("there is nothing to compare"));
    };
    // The edge has one thread, so the two-threaded side is shown for information only.
    let bar = Bar {
        what: format!("{} / {}, requests a second", product.name(), hello.name()),
        found: product.rate() / hello.rate(),
        bound: Bound::AtLeast(0.75),
        aim: 0.9,
    };
    let title =
        format!("hot: {ROWS} withdrawals again and again, a block a second, {CONNECTIONS} connections");
    Ok(section("hot", &title, &outcomes, &bar))
}

/// Writes a block a second. Returns only on failure.
async fn write_blocks(servers: &Servers) -> Failure {
    let writing = async {
        let database = servers.connect("").await?;
        let mut period = interval(BLOCK_PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            period.tick().await;
            let written = database.execute(withdrawals::NEXT_BLOCK, &[]).await;
            written.map_err(|error| cannot("write a block", &error))?;
        }
    };
    let ended: Result<std::convert::Infallible, Failure> = writing.await;
    match ended {
        Ok(never) => match never {},
        Err(failure) => failure,
    }
}
