//! Environment of the drill: a private mesh with two replicas of the services under test, filled tables, a
//! block every second, and a continuous load.

use std::{sync::Arc, time::Duration};

use mesh::failure::Failure;
use tokio::time::sleep;

use super::Report;
use crate::{
    private::{Edges, Layout, PrivateMesh, Servers},
    rig::{
        args::{PlayArgs, ReadsArgs},
        clients::{
            load::{Load, NORMAL_P99},
            samples::Sample,
        },
        read_requests::{ReadRequests, start_filled},
    },
};

/// Replicas of the services under test.
const REPLICAS: [(&str, u32); 2] = [("query", 2), ("node-info", 2)];
/// How long the service may take to become normal between two phases.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The running mesh and its load.
pub(super) struct Fixture<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) play: &'a PlayArgs,
    pub(super) servers: Servers,
    pub(super) edges: Edges,
    pub(super) load: Load,
    /// Paths whose answers the edge caches.
    pub(super) hot: Vec<Arc<str>>,
    /// Rate of the load, requests a second.
    pub(super) rate: u32,
}

impl<'a> Fixture<'a> {
    /// Starts servers, services and the load.
    pub(super) async fn start(
        mesh: &'a PrivateMesh,
        args: &'a ReadsArgs,
        seed: u64,
    ) -> Result<Self, Failure> {
        let (servers, database) = start_filled(mesh).await?;
        let edges =
            mesh.start_services(&servers, &Layout { replicas: &REPLICAS, ..Layout::default() }).await?;
        let read_requests = ReadRequests::find(&database).await?;
        let hot = read_requests.hot().into_iter().map(|request| request.path).collect();
        let mix = read_requests.mix(edges.cached, edges.uncached);
        let load = Load::start(mix, args.rate, seed)?;
        Ok(Self { mesh, play: &args.play, servers, edges, load, hot, rate: args.rate })
    }

    /// Sleeps for a time, half of it in the short form.
    pub(super) async fn sleep_scaled(&self, time: Duration) {
        sleep(self.play.either(time, time / 2)).await;
    }

    /// Waits until the service is normal; returns whether it is.
    pub(super) async fn becomes_normal(&self) -> bool {
        self.load.becomes_normal(self.play.bound(NORMAL_P99), TIMEOUT).await
    }

    /// Returns the samples since `from`, and a report of their figures.
    pub(super) async fn report(&self, name: &str, from: Duration) -> (Vec<Sample>, Report) {
        self.load.report(name, from).await
    }
}
