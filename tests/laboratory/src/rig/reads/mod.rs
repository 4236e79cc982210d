//! `mesh rig reads`: reads under failing replicas and servers.
//!
//! A private mesh with two replicas of the services under test, filled tables, and a block every second serves a
//! load that sends a fixed number of reads a second independently of earlier answers; every read is measured.

mod aborted;
mod order;
mod outages;

use std::{sync::Arc, time::Duration};

use mesh::failure::Failure;
use mesh_launcher::RestartRule;
use rand::rngs::SmallRng;
use tokio::time::sleep;

use super::{
    args::{PlayArgs, ReadsArgs, ReadsPhase},
    clients::{
        load::{Load, NORMAL_P99},
        samples::{Figures, Report},
    },
    engine::{PhasedDrill, on_private_mesh, run_phases},
    faults::{
        injector::FaultInjector,
        schedule::{Fault, ScheduledFault},
    },
    read_requests::{ReadRequests, start_filled},
    seed,
};
use crate::empty_blocks::EmptyBlocks;
use crate::private::{Edges, Layout, PrivateMesh, Servers};

/// Replicas of the services under test.
const REPLICAS: [(&str, u32); 2] = [("query", 2), ("node-info", 2)];
/// How long the service may take to become normal between two phases.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Length of the phase without faults.
const STEADY: Duration = Duration::from_secs(5);

/// Runs the drill.
pub(super) async fn drill(args: &ReadsArgs) -> Result<(), Failure> {
    on_private_mesh(RestartRule::default(), async |mesh| {
        let seed = seed(args.play.run.seed);
        let fixture = Fixture::start(mesh, args, seed).await?;
        run_phases(&fixture, &args.play, &args.phase, seed).await
    })
    .await
}

/// The running mesh and its load.
struct Fixture<'a> {
    mesh: &'a PrivateMesh,
    play: &'a PlayArgs,
    servers: Servers,
    _blocks: EmptyBlocks,
    edges: Edges,
    load: Load,
    /// Paths whose answers the edge caches.
    hot: Vec<Arc<str>>,
    /// Rate of the load, requests a second.
    rate: u32,
}

impl PhasedDrill for Fixture<'_> {
    const NAME: &'static str = "reads";
    const PHASE_TIMEOUT: Duration = Duration::from_secs(300);
    type Phase = ReadsPhase;
    type Figures = Figures;

    fn setup(&self) -> String {
        format!("{} requests a second", self.rate)
    }

    async fn becomes_normal(&self) -> bool {
        self.load.becomes_normal(self.play.bound(NORMAL_P99), TIMEOUT).await
    }

    async fn run(&self, phase: ReadsPhase, random: &mut SmallRng) -> Result<Vec<Report>, Failure> {
        let report = match phase {
            ReadsPhase::Steady => self.steady().await,
            ReadsPhase::Kill => outages::kill(self, random).await?,
            ReadsPhase::Freeze => outages::freeze(self, random).await?,
            ReadsPhase::Rolling => return outages::rolling(self).await,
            ReadsPhase::Postgres => outages::postgres(self).await?,
            ReadsPhase::Nats => outages::nats(self).await?,
            ReadsPhase::Abort => aborted::abort(self).await?,
            ReadsPhase::Order => order::order(self, random).await?,
        };
        Ok(vec![report])
    }
}

impl<'a> Fixture<'a> {
    /// Starts servers, services and the load.
    async fn start(mesh: &'a PrivateMesh, args: &'a ReadsArgs, seed: u64) -> Result<Self, Failure> {
        let (servers, database, blocks) = start_filled(mesh).await?;
        let layout = Layout { replicas: &REPLICAS, ..Layout::default() };
        let edges = mesh.start_services(&servers, &layout).await?;
        let read_requests = ReadRequests::find(&database).await?;
        let hot = read_requests.hot().into_iter().map(|request| request.path).collect();
        let mix = read_requests.mix(edges.cached, edges.uncached);
        let load = Load::start(mix, args.rate, seed)?;
        Ok(Self { mesh, play: &args.play, servers, _blocks: blocks, edges, load, hot, rate: args.rate })
    }

    async fn steady(&self) -> Report {
        let from = self.load.now();
        self.sleep_scaled(STEADY).await;
        let (_, mut report) = self.load.report("steady", from).await;
        report.none_fails();
        report
    }

    /// Sleeps for a time, half of it in the short form.
    async fn sleep_scaled(&self, time: Duration) {
        sleep(self.play.either(time, time / 2)).await;
    }

    /// Injects a fault and waits for its repair.
    async fn inject(&self, fault: Fault) -> Result<(), Failure> {
        let schedule = [ScheduledFault { at: Duration::ZERO, fault }];
        let injected = FaultInjector::new(self.mesh).run(&schedule).await;
        let broken = injected.into_iter().find(|injected| !injected.is_repaired);
        broken.map_or(Ok(()), |broken| Err(Failure::failed(broken.note)))
    }
}
