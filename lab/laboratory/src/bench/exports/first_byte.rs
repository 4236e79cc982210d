//! Section "first-byte": an export of a thousand segments, from the request to the first byte of its body.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mesh::{failure::Failure, processes::NATS};

use super::{
    super::{
        comparison::{self, REQUESTS, Side},
        load::{Client, Pace},
        section::Figures,
        world::World,
    },
    MANY, drain, path,
};

/// Time between two requests, so that data prefetched for the earlier one has arrived.
const PERIOD: Duration = Duration::from_millis(50);

/// Measures a range that was requested before, and ranges that were not: each has one segment less than the
/// one before.
pub(crate) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let many = world.history().await?.many;
    let (edge, requested) = (world.edges().await?.cached, Arc::new(AtomicU64::new(0)));
    drain::first_byte(edge, &path(many, 0)).await.map_err(Failure::failed)?;
    let side = |name: &str, paths: Paths| {
        let watched = world.mesh.watch(&["export", NATS, "edge"]);
        let pace = Pace { clients: 1, length: world.length(), period: Some(PERIOD) };
        let connect = move |_| std::future::ready(Ok(FirstBytes { edge, paths: Arc::clone(&paths) }));
        Side::blocking(name, REQUESTS, move || pace.run(&watched, &connect))
    };
    let unknown = move || path(many, requested.fetch_add(1, Ordering::Relaxed) % (MANY - 1) + 1);
    let sides = comparison::run_rounds([
        side("warm layout", Arc::new(move || path(many, 0))),
        side("range never requested", Arc::new(unknown)),
    ])
    .await?;
    let found = vec![sides[0].p50_ms()];
    Ok(comparison::figures(&format!("an export of {MANY} segments"), &sides, found))
}

type Paths = Arc<dyn Fn() -> String + Send + Sync>;

/// Requests exports, each over a new connection and up to its first byte.
struct FirstBytes {
    edge: SocketAddr,
    paths: Paths,
}

impl Client for FirstBytes {
    async fn call(&mut self) -> Result<bool, String> {
        drain::first_byte(self.edge, &(self.paths)()).await.map(|_| true)
    }
}
