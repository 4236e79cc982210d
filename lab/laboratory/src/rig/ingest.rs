//! `mesh rig ingest`: everything between a chain and the store is killed and frozen in random order while the
//! chain continues. The store must end with the rows that an undisturbed run writes.
//!
//! An odd seed uses two decoders on the bus, an even one the built-in decoder.
//!
//! Between the faults it measures how soon the other replica writes the next block when the active one is killed
//! or frozen and nothing else is down.

use std::{future::pending, time::Duration};

use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
    terminal::print_line,
};
use mesh_devnode::ReservedPort;
use mesh_launcher::services::INGEST;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng, seq::IndexedRandom as _};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use super::{
    args::{KILLS as KILL_COUNT, Options, PlayArgs, SLACK},
    engine::{Drill, Play, Run},
    faults::{
        injector::{FaultInjector, InjectedFault},
        schedule::{Fault, ScheduledFault, Target},
        send,
    },
    report::{Column, Report},
};
use crate::{
    digests::Digests,
    generated_chain::ChainArgs,
    metrics,
    private::{PrivateMesh, Servers, connect},
    private_chain::{CHAIN, DECODER, Ingest, head, stored},
};

const REPLICAS: u32 = 2;
const KILLS: [u32; 2] = [1_000, 50];
/// Faults between two takeovers that are measured.
const FAULTS: usize = 25;
/// Most faults at a time.
const AT_ONCE: usize = 4;
/// Longest time from one fault to the next; longer in the short form, where debug builds take longer to start.
const PAUSE_MS: [u64; 2] = [500, 1_000];
/// Longest freeze.
const FROZEN_MS: [u64; 2] = [6_000, 2_500];
/// One in so many faults is a freeze.
const FREEZES: u32 = 8;
/// Most rows of a block, and the time to the next one.
const ROWS: u64 = 30;
const PERIOD: Duration = Duration::from_millis(250);
/// How long everything may take to be stored after the last fault.
const STORED_WITHIN: Duration = Duration::from_secs(60);

/// What is hit, by its share of the faults.
const TARGETS: [(Target, u32); 7] = [
    (Target { name: INGEST, replica: 0 }, 4),
    (Target { name: INGEST, replica: 1 }, 4),
    (Target { name: DECODER, replica: 0 }, 2),
    (Target { name: DECODER, replica: 1 }, 2),
    (Target { name: POSTGRES, replica: 0 }, 2),
    (Target { name: NATS, replica: 0 }, 2),
    (Target { name: CHAIN, replica: 0 }, 3),
];

pub(super) const DRILL: Drill = Drill {
    name: "ingest",
    about: "Kills and freezes everything between a chain and the store; no row may be missing or duplicated",
    options: &[SLACK, KILL_COUNT],
    play: Play::Own(|mesh, options, seed| Box::pin(run(mesh, options, seed))),
};

async fn run(mesh: &PrivateMesh, options: &Options, seed: u64) -> Result<Run, Failure> {
    let play = options.play();
    let kills = options.given("kills").unwrap_or_else(|| play.either(KILLS));
    let is_service = !seed.is_multiple_of(2);
    let decoder = if is_service { "nats" } else { "events" };
    print_line(&format!("playing seed {seed} with the decoder {decoder}"));
    let report = Fixture::start(mesh, &play, seed, is_service).await?.play(kills).await?;
    let title = format!("ingest: {REPLICAS} replicas, decoder {decoder}, a block every {PERIOD:?}");
    let mut json = report.json();
    json["decoder"] = decoder.into();
    Ok(Run { title, json, reports: vec![report] })
}

/// A chain and the processes that store it.
struct Fixture<'a> {
    mesh: &'a PrivateMesh,
    play: &'a PlayArgs,
    servers: Servers,
    chain: ChainArgs,
    seed: u64,
    targets: Vec<(Target, u32)>,
    /// Reserves the node's address while it is down.
    _port: ReservedPort,
}

impl<'a> Fixture<'a> {
    async fn start(
        mesh: &'a PrivateMesh,
        play: &'a PlayArgs,
        seed: u64,
        is_service: bool,
    ) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        let (port, chain) = ChainArgs::now(ROWS, 1, PERIOD)?;
        let last = Some(mesh.home.root().join("last-block"));
        let chain = ChainArgs { seed, varied: true, last, rendered: 0, ..chain };
        mesh.start_chain(CHAIN, &chain).await?;
        if is_service {
            mesh.start_decoders(&servers, REPLICAS)?;
        }
        let decoder = if is_service { "nats" } else { "events" };
        let env = [("MESH_INGEST_DECODER", decoder)];
        let ingest = Ingest { name: INGEST, database: &servers.database, chain: &chain, env: &env };
        mesh.start_ingest(&servers, &ingest, REPLICAS)?;
        mesh.ready(&[INGEST]).await?;
        let mut targets = TARGETS.to_vec();
        targets.retain(|(target, _)| is_service || target.name != DECODER);
        Ok(Self { mesh, play, servers, chain, seed, targets, _port: port })
    }

    /// Injects faults until so many processes are killed, and compares what is stored.
    async fn play(&self, kills: u32) -> Result<Report, Failure> {
        let mut random = SmallRng::seed_from_u64(self.seed);
        let (injector, mut takeovers) = (FaultInjector::new(self.mesh), Takeovers::default());
        let mut counts = Counts::default();
        while counts.kills < kills as usize {
            let left = kills as usize - counts.kills;
            let signal = if takeovers.0.len().is_multiple_of(2) { Signal::KILL } else { Signal::STOP };
            takeovers.measure(self, signal).await?;
            let schedule = self.schedule(left.min(FAULTS), &mut random);
            injector.run_until(schedule, AT_ONCE, pending()).await;
            counts = Counts::of(injector.injected());
        }
        let stored_under_faults = head(&self.servers.connect().await?).await?;
        let last = self.chain.latest() + 2;
        if let Some(file) = &self.chain.last {
            std::fs::write(file, last.to_string()).map_err(|error| cannot("end the chain", &error))?;
        }
        let client = self.servers.connect().await?;
        let is_stored = stored(&client, last, self.play.bound(STORED_WITHIN)).await;
        let is_ready = self.mesh.until_serving(&[INGEST], self.play.bound(STORED_WITHIN)).await;
        let halts = self.mesh.metric(INGEST, "mesh_ingest_halted").await.map(|halts| halts as u64);
        let found = Digests::read(&client).await?;
        let differences = found.differences(&self.undisturbed(last).await?);
        let blocks = client.query_one("SELECT count(*) FROM blocks", &[]).await;
        let blocks: i64 = blocks.map_err(|error| cannot("count blocks", &error))?.get(0);
        let figures = vec![
            Column::count("kills", "kills", counts.kills),
            Column::count("freezes", "freezes", counts.freezes),
            Column::count("blocks", "blocks", blocks),
            Column::count("rows", "rows", found.rows()),
        ];
        let mut report = Report::new(format!("seed {}", self.seed), figures);
        report.bar(format!("block {last} is stored after the last fault"), is_stored.is_ok());
        report.messages.extend(is_stored.err().map(|failure| failure.to_string()));
        report.bar(format!("heights from 1 to {last} without a gap: {blocks}"), blocks == last.cast_signed());
        let (tables, rows) = (found.tables(), found.rows());
        let what = format!("of {tables} tables with {rows} rows differ from an undisturbed run");
        report.bar_empty(&what, differences);
        report.bar("there are more rows than blocks", rows > last.cast_signed());
        report.bar("both replicas are ready", is_ready);
        report.bar(format!("halts at the end: {halts:?}, at most 0"), halts == Some(0));
        report.bar_empty("halts in the logs", self.logged_halts());
        report.bar(
            format!("blocks stored while faults were injected: {stored_under_faults}, at least {}", last / 2),
            stored_under_faults >= last / 2,
        );
        report.bar_empty("processes that did not return", counts.lost);
        takeovers.hold(self.play, &mut report);
        Ok(report)
    }

    /// Random faults, of which so many are kills.
    fn schedule(&self, kills: usize, random: &mut SmallRng) -> Vec<ScheduledFault> {
        let (mut schedule, mut at, mut left) = (Vec::new(), Duration::ZERO, kills);
        while left > 0 {
            at += Duration::from_millis(random.random_range(0..self.play.either(PAUSE_MS)));
            let target = self.targets.choose_weighted(random, |(_, share)| *share);
            let Ok(&(target, _)) = target else { break };
            let fault = if target.name != POSTGRES && random.random_ratio(1, FREEZES) {
                let most = self.play.either(FROZEN_MS);
                Fault::Freeze(target, Duration::from_millis(random.random_range(200..most)))
            } else {
                left -= 1;
                Fault::Kill(target)
            };
            schedule.push(ScheduledFault { at, fault });
        }
        schedule
    }

    /// The lines about halts in the logs of the replicas.
    fn logged_halts(&self) -> Vec<String> {
        let logs = self.mesh.group_logs(INGEST, REPLICAS);
        let logs = logs.iter().filter_map(|log| std::fs::read(log).ok());
        let text = String::from_utf8_lossy(&logs.collect::<Vec<_>>().concat()).into_owned();
        text.lines().filter(|line| line.contains("halted: ")).map(str::to_owned).collect()
    }

    /// Follows the chain without faults into another database, and reads that.
    async fn undisturbed(&self, last: u64) -> Result<Digests, Failure> {
        print_line("the same chain without faults");
        let reference = self.servers.another_database("reference").await?;
        let ingest = Ingest { name: "reference", database: &reference, chain: &self.chain, env: &[] };
        self.mesh.start_ingest(&self.servers, &ingest, 1)?;
        let client = connect(reference.url()).await?;
        stored(&client, last, self.play.bound(STORED_WITHIN)).await?;
        Digests::read(&client).await
    }
}

#[derive(Default)]
struct Counts {
    kills: usize,
    freezes: usize,
    /// Processes that were not ready in time.
    lost: Vec<String>,
}

impl Counts {
    fn of(injected: Vec<InjectedFault>) -> Self {
        let mut counts = Self::default();
        for injected in injected {
            match injected.scheduled.fault {
                // It was down already.
                _ if injected.note.contains("not there") => {}
                fault if !injected.is_repaired => counts.lost.push(format!("{fault}: {}", injected.note)),
                Fault::Kill(_) => counts.kills += 1,
                _ => counts.freezes += 1,
            }
        }
        counts
    }
}

/// How long everything may take to work before a measurement.
const CALM_WITHIN: Duration = Duration::from_secs(60);
/// Blocks by whose writer the active replica is known.
const BLOCKS: u64 = 4;
/// What a replica sent before its death is stored after this time.
const SETTLED: Duration = Duration::from_millis(50);
/// The bounds for a killed and for a frozen replica.
const KILLED: Duration = Duration::from_secs(2);
const FROZEN: Duration = Duration::from_secs(5);

/// The measured takeovers, by the signal that the active replica was sent.
#[derive(Default)]
struct Takeovers(Vec<(Signal, Duration)>);

impl Takeovers {
    /// Waits until nothing is down, sends the active replica a signal, and measures the time to the next block.
    async fn measure(&mut self, fixture: &Fixture<'_>, signal: Signal) -> Result<(), Failure> {
        let Fixture { mesh, servers, play, targets, .. } = fixture;
        let within = play.bound(CALM_WITHIN);
        let names: Vec<&str> = targets.iter().map(|(target, _)| target.name).collect();
        let mut calm = mesh.until_serving(&names, within).await;
        let client = servers.connect().await?;
        calm &= stored(&client, fixture.chain.latest(), within).await.is_ok();
        if !calm {
            return Err(Failure::failed(format!(
                "not everything works again within {within:?} after faults"
            )));
        }
        let before = written(fixture).await;
        stored(&client, head(&client).await? + BLOCKS, within).await?;
        let after = written(fixture).await;
        let wrote = after.iter().map(|(pid, count)| {
            let earlier = before.iter().find(|(other, _)| other == pid).map_or(0, |(_, count)| *count);
            (count.saturating_sub(earlier), *pid)
        });
        let Some((_, active)) = wrote.max() else { return Err(Failure::failed("no replica answers")) };
        let begun = Instant::now();
        send(active, signal)?;
        sleep(SETTLED).await;
        let height = head(&client).await?;
        let taken = stored(&client, height + 1, within).await;
        let took = begun.elapsed();
        if signal == Signal::STOP {
            send(active, Signal::CONT)?;
        }
        taken?;
        print_line(&format!("{signal:?} of the active replica: the next block after {took:.2?}"));
        self.0.push((signal, took));
        Ok(())
    }

    /// Adds the bars of the longest takeovers.
    fn hold(&self, play: &PlayArgs, report: &mut Report) {
        for (what, signal, bound) in [("kill -9", Signal::KILL, KILLED), ("SIGSTOP", Signal::STOP, FROZEN)] {
            let found = self.0.iter().filter(|(sent, _)| *sent == signal).map(|(_, took)| *took);
            if let Some(longest) = found.clone().max() {
                let count = found.count();
                let what = format!("next block after {what} of the active replica, worst of {count}");
                report.bar_at_most(&what, longest, play.bound(bound));
            }
        }
    }
}

/// The number of blocks that each replica has written, by process id.
async fn written(fixture: &Fixture<'_>) -> Vec<(u32, u64)> {
    let mut written = Vec::new();
    for row in fixture.mesh.supervisor.rows().iter().filter(|row| row.service == INGEST) {
        if let Some(metrics) = metrics::fetch(row).await {
            written
                .push((row.pid, metrics::sum(&metrics, "mesh_ingest_block_duration_seconds_count") as u64));
        }
    }
    written
}
