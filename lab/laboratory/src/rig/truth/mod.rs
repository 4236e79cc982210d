//! `mesh rig truth`: under faults, every answer is what the store held at the answer's height.
//!
//! A writer commits blocks and late rows; the oracles compute the expected answers in its transactions.
//! Clients read in every encoding and revalidate while processes and links fail in turn. Every answer must
//! equal that of a state with its height, those as of a block included, and be at most 1 s old (10 s during an outage of the store);
//! heights never decrease on one connection. Watchers of every question receive such states in order, and end
//! with the last one.

mod history;
mod judge;
mod writer;

use std::{
    cell::Cell,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use judge::{AGE, Observations};
use mesh::{failure::Failure, terminal::print_line};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng, seq::SliceRandom as _};
use serde_json::json;
use tokio::time::{Instant, sleep};
use writer::Writer;

use super::{
    args::{CHECKED_RATE, MINUTES_5, Options, SLACK},
    clients::{
        load::{Load, RequestClass},
        samples::{Figures, ReadResult, Sample},
    },
    engine::{Drill, Play, Run},
    faults::{
        explanation::{FailureKind, FaultSpan, failed_reads, is_explained},
        injector::FaultInjector,
        links::Links,
        schedule::{Blockage, Fault, Link, LinkEnd, ScheduledFault, Target},
    },
    report::Report,
    watching::watchers::Watchers,
};
use crate::private::{Layout, PrivateMesh, UNCACHED_EDGE};

/// Replicas of the services: each edge has its own cache; `node-info` has one replica, so that its fault
/// stops the announcements of new blocks.
const REPLICAS: [(&str, u32); 5] =
    [("edge", 2), ("query", 2), ("node-info", 1), ("export", 0), (UNCACHED_EDGE, 0)];
const LENGTH_SHORT: Duration = Duration::from_secs(8);
/// How long clients and the writer continue after the last fault, so that its recovery is measured, too.
const RECOVERY: Duration = Duration::from_secs(2);
/// A fault explains what is requested up to this long after its end.
const AFTER: Duration = Duration::from_secs(5);
/// Pause between two faults, and the time that a process needs to stop and start, milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 400..1400;
const STARTS_WITHIN: Duration = Duration::from_secs(1);
/// Length of an outage of the bus and of the store, milliseconds. Services consider the store unreachable
/// after three seconds of silence.
const BUS_AWAY_MS: std::ops::Range<u64> = 300..3000;
const STORE_AWAY_MS: std::ops::Range<u64> = 500..4500;
/// How long a replica is frozen.
const FROZEN: Duration = Duration::from_secs(1);
/// Longest time from the last block until all watchers have its state.
const DELIVERED_WITHIN: Duration = Duration::from_secs(15);
/// Longest time until all replicas are ready at the end.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// The path that `node-info` answers, of which there is one replica.
const LIMITS: &str = "/api/v2/network/limits";
/// One of this many reads is for that path.
const LIMITS_ONE_OF: u32 = 8;

pub(super) const DRILL: Drill = Drill {
    name: "truth",
    about: "Compares every answer with the store at the answer's height while services and servers restart",
    options: &[SLACK, MINUTES_5, CHECKED_RATE],
    // Each run needs an empty store.
    play: Play::Own(|mesh, options, seed| Box::pin(run(mesh, options, seed))),
};

async fn run(mesh: &PrivateMesh, options: &Options, seed: u64) -> Result<Run, Failure> {
    let (play, rate) = (options.play(), options.number("rate"));
    let servers = mesh.start_servers().await?;
    let (writer, history) = Writer::start(servers.connect().await?, seed).await?;
    let links = Links::inside(&servers, None, seed).await?;
    let replica_env = Some(links.replica_env(&servers));
    let layout = Layout { replicas: &REPLICAS, replica_env, ..Layout::default() };
    let edge = mesh.start_services(&servers, &layout).await?.cached;
    let length = play.either([Duration::from_secs(u64::from(options.number("minutes")) * 60), LENGTH_SHORT]);
    print_line(&format!("seed {seed}: faults for {length:?}"));

    let observations = Observations::new(Arc::clone(&history));
    let loads = start_loads(edge, &observations, rate, seed)?;
    let numbering = Arc::clone(&history);
    let number = Arc::new(move |body: &[u8]| numbering.content(body.to_vec()));
    let watchers = Watchers::start(edge, None, judge::watches(&history), number);
    let (injector, is_over) = (FaultInjector::new(mesh).with_links(&links), Cell::new(false));
    let injecting = async {
        injector.run_until(schedule(seed), 1, sleep(length)).await;
        sleep(RECOVERY).await;
        is_over.set(true);
    };
    let ((), written) = tokio::join!(injecting, writer.run(play.slack, || is_over.get()));
    written?;
    let mut samples: Vec<Sample> = Vec::new();
    for (load, _) in &loads {
        let end = load.finish().await;
        samples.extend(load.samples(Duration::ZERO, end));
    }
    let names = REPLICAS.iter().filter(|(_, replicas)| *replicas > 0).map(|(name, _)| *name);
    let is_ready = mesh.until_serving(&names.collect::<Vec<_>>(), READY_WITHIN).await;
    let differences = watchers.differences(DELIVERED_WITHIN).await;
    let record = watchers.end().await;
    let faults = injector.injected();
    let spans: Vec<FaultSpan> = faults.iter().map(|fault| fault.span).collect();
    let end = samples.iter().map(|sample| sample.due).max().unwrap_or_default();
    let figures = Figures::of(&samples, Duration::ZERO, end);
    let mut report = figures.report(format!("seed {seed}"));
    answers_hold(&mut report, &figures, &loads, &observations, &spans, AFTER * play.slack);
    let allowed = (AFTER * play.slack, play.slack);
    judge::watches_hold(&mut report, &history, &record, &differences, &spans, allowed);
    let broken = faults.iter().filter(|fault| !fault.is_repaired).count();
    report.bar(
        format!("faults that were not repaired: {broken} of {}, at most 0", faults.len()),
        broken == 0 && is_ready && !faults.is_empty(),
    );
    caches_and_past_are_read(&mut report, &observations, cached_reads(mesh).await);
    report.notes.push(format!("{} states of the store, {} faults", history.len(), faults.len()));
    let json = json!({ "found": report.json(), "states": history.len(), "faults": faults.len() });
    let title = format!("truth: seed {seed}, {rate} reads a second");
    Ok(Run { title, reports: vec![report], json })
}

/// All kinds of faults in random order, repeated.
fn schedule(seed: u64) -> impl Iterator<Item = ScheduledFault> {
    let mut random = SmallRng::seed_from_u64(seed);
    let (mut at, mut faults) = (Duration::ZERO, Vec::new());
    std::iter::from_fn(move || {
        if faults.is_empty() {
            faults = shuffled_faults(&mut random);
        }
        let fault = faults.pop()?;
        at += Duration::from_millis(random.random_range(PAUSE_MS));
        let scheduled = ScheduledFault { at, fault };
        at += match fault {
            Fault::Block(_, _, time) | Fault::Freeze(_, time) => time,
            _ => STARTS_WITHIN,
        };
        Some(scheduled)
    })
}

fn shuffled_faults(random: &mut SmallRng) -> Vec<Fault> {
    let (edge, query) = (random.random_range(0..2), random.random_range(0..2));
    let (edge, other_edge) =
        (Target { name: "edge", replica: edge }, Target { name: "edge", replica: 1 - edge });
    let query = Target { name: "query", replica: query };
    let node_info = Target { name: "node-info", replica: 0 };
    let mut away = |range| Duration::from_millis(random.random_range(range));
    let store = Link { from: None, to: LinkEnd::Database };
    let mut faults = vec![
        Fault::Block(store, Blockage::Refused, away(STORE_AWAY_MS)),
        Fault::Block(store, Blockage::Silent, away(STORE_AWAY_MS)),
        Fault::Block(Link { from: Some(edge), to: LinkEnd::Bus }, Blockage::Refused, away(BUS_AWAY_MS)),
        Fault::Freeze(query, FROZEN),
    ];
    for target in [query, node_info, other_edge] {
        faults.extend([Fault::Kill(target), Fault::Stop(target)]);
    }
    faults.shuffle(random);
    faults
}

/// Starts the clients of a run: two loads with the same seed, since an edge should share one read between concurrent
/// equal requests, and one of requests that only `node-info` answers, for which the flag is true.
fn start_loads(
    edge: SocketAddr,
    observations: &Arc<Observations>,
    rate: u32,
    seed: u64,
) -> Result<[(Load, bool); 3], Failure> {
    let start = |is_limits: bool, rate: u32| {
        let requests = observations.requests(|path| (path == LIMITS) == is_limits);
        let load = Load::start(vec![RequestClass { percent: 100, edge, requests }], rate, seed)?;
        Ok::<_, Failure>((load, is_limits))
    };
    let limits = rate / LIMITS_ONE_OF;
    let queries = (rate - limits) / 2;
    Ok([start(false, queries)?, start(false, queries)?, start(true, limits)?])
}

/// Whether a fault may cause this failure of a read. Stricter than in other drills, since one replica of
/// `query` and one edge are always available.
fn may_cause(fault: Fault, failure: FailureKind, is_limits: bool) -> bool {
    match (failure, fault) {
        (FailureKind::Refused, Fault::Block(..)) => true,
        (FailureKind::Refused, Fault::Kill(target) | Fault::Stop(target)) => {
            is_limits && target.name == "node-info"
        }
        (FailureKind::Broken, fault) => stops_edge(fault),
        _ => false,
    }
}

fn stops_edge(fault: Fault) -> bool {
    matches!(fault, Fault::Kill(target) | Fault::Stop(target) if target.name == "edge")
}

fn blocks_store(fault: Fault) -> bool {
    matches!(fault, Fault::Block(Link { to: LinkEnd::Database, .. }, ..))
}

fn answers_hold(
    report: &mut Report,
    figures: &Figures,
    loads: &[(Load, bool)],
    observations: &Observations,
    spans: &[FaultSpan],
    after: Duration,
) {
    let during = |(sent, received): (Instant, Instant), is_cause: fn(Fault) -> bool| {
        let overlaps = |span: &FaultSpan| span.when.0 <= received && sent <= span.when.1 + after;
        spans.iter().any(|span| is_cause(span.fault) && overlaps(span))
    };
    let (mut wrong, mut unexplained, mut closed) = (0, 0, 0);
    for (load, is_limits) in loads {
        wrong += load.failed().iter().filter(|sample| sample.result == ReadResult::Wrong).count();
        for failed in failed_reads(load) {
            let causes = |span: &&FaultSpan| may_cause(span.fault, failed.failure, *is_limits);
            let causes: Vec<FaultSpan> = spans.iter().filter(causes).copied().collect();
            if !is_explained(&failed, &causes, after) {
                unexplained += 1;
                report.messages.push(failed.message);
            }
        }
        let again = load.samples(Duration::ZERO, load.now()).into_iter().filter(|sample| sample.again);
        let when = |sample: Sample| (load.moment(sample.due), load.moment(sample.due + sample.took));
        closed += again.map(when).filter(|when| !during(*when, stops_edge)).count();
    }
    report.bar_none_of("answers that the store never held at their height", wrong, figures.fine);
    let old = std::mem::take(&mut *observations.old.lock());
    let (allowed, too_old): (Vec<_>, Vec<_>) =
        old.into_iter().partition(|old| during(old.when, blocks_store));
    let what =
        format!("answers older than {AGE:?} with the store available ({} without the store)", allowed.len());
    report.bar_empty(&what, too_old.into_iter().map(|old| old.what).collect());
    report.bar_none("failed reads that no fault explains", unexplained);
    report.bar_none("connections closed without a stop of their edge", closed);
}

/// Adds the bars that the answers were not all read from the store, and that some were as of a block.
fn caches_and_past_are_read(report: &mut Report, observations: &Observations, cached: u64) {
    let not_modified = observations.not_modified.load(Ordering::Relaxed);
    report.bar(
        format!("answers from a cache or of an equal read: {cached}, without a body (304): {not_modified}, at least 1"),
        cached > 0 && not_modified > 0,
    );
    let past = observations.past.load(Ordering::Relaxed);
    report.bar(format!("right answers as of a block: {past}, at least 1"), past > 0);
}

/// Number of answers of the running edges without a call to a service.
async fn cached_reads(mesh: &PrivateMesh) -> u64 {
    let reads = async |metric| mesh.metric("edge", metric).await.unwrap_or_default();
    (reads("mesh_edge_reads_total").await - reads("mesh_edge_reads_total{source=\"service\"}").await) as u64
}
