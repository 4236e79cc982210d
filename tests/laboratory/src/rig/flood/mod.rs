//! `mesh rig flood`: attackers against an edge that serves regular reads.
//!
//! In each phase the load runs undisturbed for a while, and then together with attackers from other addresses
//! of the loopback network. The load must not fail or become slow; the edge must close each attacker's
//! connection in time.

mod attackers;
mod phases;

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt as _, time::Duration};

use mesh::{
    failure::{Failure, cannot},
    programs,
    terminal::print_line,
};
use mesh_launcher::RestartRule;
use rand::rngs::SmallRng;
use rustix::process::{Resource, getrlimit};
use tokio::time::sleep;
use tokio_postgres::Client;

use super::{
    args::{FloodArgs, FloodPhase, PlayArgs},
    clients::{
        load::Load,
        samples::{Figures, Report, Sample, quantile},
    },
    engine::{PhasedDrill, on_private_mesh, run_phases},
    read_requests::{ReadRequests, start_filled},
    report::in_ms,
    seed,
};
use crate::empty_blocks::EmptyBlocks;
use crate::private::{Layout, PrivateMesh, Servers};

/// Number of concurrent attackers.
const ATTACKERS: usize = 5000;
const ATTACKERS_SHORT: usize = 200;
/// Open files that this process needs in addition to those of its attackers.
const OTHER_FILES: usize = 1000;
/// How long the load is measured before an attack.
const STEADY: Duration = Duration::from_secs(10);
const STEADY_SHORT: Duration = Duration::from_secs(2);
/// Greatest p99 of the load during an attack, as a multiple of the p99 before.
const TIMES: u32 = 2;
/// A p99 below this is always accepted: it is dominated by the scheduler. Longer in the short form, which
/// runs debug builds.
const NO_TIME: Duration = Duration::from_millis(10);
const NO_TIME_SHORT: Duration = Duration::from_millis(100);
/// How long the load may take until all its requests succeed.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Rate limit of one address at the edge with a rate limit: requests a second, and burst (contract section
/// 7).
const RATE_PER_S: u32 = 100;
const RATE_BURST: u32 = 500;
/// File descriptors of the edge with few.
const FEW_FILES: u32 = 256;

/// Runs the drill.
pub(super) async fn drill(args: &FloodArgs) -> Result<(), Failure> {
    mesh_launcher::open_files::raise();
    on_private_mesh(RestartRule::default(), async |mesh| {
        let seed = seed(args.play.run.seed);
        let fixture = Fixture::start(mesh, args, seed).await?;
        run_phases(&fixture, &args.play, &args.phase, seed).await
    })
    .await
}

/// The running mesh.
struct Fixture<'a> {
    mesh: &'a PrivateMesh,
    play: &'a PlayArgs,
    servers: Servers,
    _blocks: EmptyBlocks,
    /// HTTP address of the usual edge.
    edge: SocketAddr,
    /// Rate of the load, requests a second.
    rate: u32,
    /// Number of concurrent attackers.
    attacker_count: usize,
    database: Client,
    seed: u64,
}

/// The load of a phase, with its p99 before the attack.
struct MeasuredLoad {
    load: Load,
    steady: Duration,
    from: Duration,
}

impl PhasedDrill for Fixture<'_> {
    const NAME: &'static str = "flood";
    const PHASE_TIMEOUT: Duration = Duration::from_secs(300);
    type Phase = FloodPhase;
    type Figures = Figures;

    fn setup(&self) -> String {
        format!("{} requests a second beside {} attackers", self.rate, self.attacker_count)
    }

    /// Each phase has its own load and waits until it is served normally.
    async fn becomes_normal(&self) -> bool {
        true
    }

    async fn run(&self, phase: FloodPhase, _: &mut SmallRng) -> Result<Vec<Report>, Failure> {
        phases::run(self, phase).await
    }
}

impl<'a> Fixture<'a> {
    /// Starts servers and services.
    async fn start(mesh: &'a PrivateMesh, args: &'a FloodArgs, seed: u64) -> Result<Self, Failure> {
        let (servers, database, blocks) = start_filled(mesh).await?;
        let edges = mesh.start_services(&servers, &Layout::default()).await?;
        let files = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
        let wanted = args.play.either(ATTACKERS, ATTACKERS_SHORT);
        // The phase with idle connections has twice as many.
        let attacker_count = wanted.min(files.saturating_sub(OTHER_FILES) / 2).max(1);
        if attacker_count < wanted {
            print_line(&format!("only {files} files may be open: {attacker_count} attackers of a kind"));
        }
        let edge = edges.cached;
        Ok(Self {
            mesh,
            play: &args.play,
            servers,
            _blocks: blocks,
            edge,
            rate: args.rate,
            attacker_count,
            database,
            seed,
        })
    }

    /// Starts the load at an edge and measures it without an attack.
    async fn load(&self, edge: SocketAddr) -> Result<MeasuredLoad, Failure> {
        let mix = ReadRequests::find(&self.database).await?.mix(edge, edge);
        let load = Load::start(mix, self.rate, self.seed)?;
        // Waits until connections are open and caches are filled.
        if !load.becomes_normal(Duration::MAX, TIMEOUT).await {
            return Err(Failure::failed("the load is not answered even without an attack"));
        }
        let from = load.now();
        sleep(self.play.either(STEADY, STEADY_SHORT)).await;
        let to = load.now();
        load.until_finished(to).await;
        let samples = load.samples(from, to);
        Ok(MeasuredLoad { steady: p99(&samples), from: load.now(), load })
    }

    /// Ends the load and reports it, with the bars that are common to all attacks.
    async fn report(&self, name: &str, measured_load: MeasuredLoad) -> Report {
        let MeasuredLoad { load, steady, from } = measured_load;
        let (samples, mut report) = load.report(name, from).await;
        report.none_fails();
        let no_time = self.play.either(NO_TIME, NO_TIME_SHORT);
        let bound = self.play.bound((steady * TIMES).max(no_time));
        report.bar_at_most(
            &format!("p99 of the others, {} without the attack", in_ms(steady)),
            p99(&samples),
            bound,
        );
        report
    }

    /// Starts an edge with a rate limit per address.
    async fn edge_with_rate(&self) -> Result<SocketAddr, Failure> {
        let env = [("MESH_EDGE_RATE_PER_S", RATE_PER_S), ("MESH_EDGE_RATE_BURST", RATE_BURST)];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_string())).to_vec();
        self.mesh.start_edge_with(&self.servers, "edge-rate", env, None).await
    }

    /// Starts an edge with [`FEW_FILES`] file descriptors.
    async fn edge_with_few_files(&self) -> Result<SocketAddr, Failure> {
        let edge = programs::beside("edge")?;
        let folder = self.mesh.home.root().join("few-files");
        let program = folder.join("edge");
        let write = || {
            fs::create_dir_all(&folder)?;
            fs::write(&program, format!("#!/bin/sh\nulimit -n {FEW_FILES}\nexec {edge:?}\n"))?;
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
        };
        write().map_err(|error| cannot("write a program", &error))?;
        self.mesh.start_edge_with(&self.servers, "edge-files", Vec::new(), Some(folder)).await
    }
}

fn p99(samples: &[Sample]) -> Duration {
    quantile(samples.iter().map(|sample| sample.took).collect(), 0.99)
}
