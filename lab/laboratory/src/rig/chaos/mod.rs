//! `mesh rig chaos`: a random fault every few seconds under full traffic.
//!
//! A process is killed or frozen, a server restarted, or a network link delayed or cut while clients read,
//! download and submit. Every answer must be correct; every failed request must be reported as the contract
//! allows and be explained by a fault. Afterwards no process may use more resources than before, and the
//! edges' request counts must agree with those of their clients.

mod figures;

use std::{cell::RefCell, time::Duration};

use figures::Report;
use mesh::{failure::Failure, terminal::print_line};
use rand::{SeedableRng as _, rngs::SmallRng};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    args::{DOWNLOADS, MINUTES_20, READ_RATE, SLACK, SUBMISSIONS, WATCHERS},
    clients::heads::HeadObserver,
    engine::{Drill, Play, RESTARTED_SOON, Run},
    faults::{
        explanation::FaultSpan,
        injector::{FaultInjector, InjectedFault},
        schedule::RandomSchedule,
    },
    resource_usage::{EdgeRequestCount, ResourceUsage},
    traffic::{Paces, Traffic, check_submissions, files_are_whole, none_is_outdated, whole_mesh},
    world::{REPLICAS, Setup, World},
};

/// Time between two faults.
const EVERY: Duration = Duration::from_secs(3);
/// How long a freeze and a delay last.
const LASTS: Duration = Duration::from_secs(5);
/// A process that was hit is not hit again for this long.
const BUSY: Duration = Duration::from_secs(8);
/// A fault explains failures of requests sent up to this long after its end.
const AFTER: Duration = Duration::from_secs(5);
/// How long traffic continues after the last repair.
const QUIET: Duration = Duration::from_secs(15);
/// How long traffic runs before the resource usage is first read.
const WARM_UP: Duration = Duration::from_secs(10);
/// Uncertainty of the measured age of an answer.
const BLUR: Duration = Duration::from_millis(500);
/// How long all replicas may take to be ready, and resource usage to return to its earlier level.
const READY_WITHIN: Duration = Duration::from_secs(60);
const BACK_WITHIN: Duration = Duration::from_secs(90);

/// Durations of a run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    faults: RandomSchedule,
    after: Duration,
    quiet: Duration,
    warm_up: Duration,
    paces: Paces,
}

impl Plan {
    fn new(world: &World<'_>) -> Self {
        let (slow, after) = (Duration::from_secs(6), world.play.bound(AFTER));
        let length = Duration::from_secs(u64::from(world.options.number("minutes")) * 60);
        let long = Self {
            faults: RandomSchedule { length, every: EVERY, lasts: LASTS, busy: BUSY },
            after,
            quiet: after + QUIET,
            warm_up: WARM_UP,
            paces: Paces { slow, long: Duration::from_secs(25) },
        };
        let (every, lasts) = (Duration::from_millis(1500), Duration::from_secs(2));
        let short = Self {
            faults: RandomSchedule { length: every * 6, every, lasts, busy: lasts * 2 },
            after,
            quiet: Duration::from_secs(3),
            warm_up: Duration::from_secs(3),
            paces: Paces { slow, long: slow },
        };
        world.play.either(long, short)
    }
}

pub(super) const DRILL: Drill = Drill {
    name: "chaos",
    about: "Injects random faults; no client may receive a wrong answer",
    options: &[SLACK, MINUTES_20, READ_RATE, DOWNLOADS, SUBMISSIONS, WATCHERS],
    play: Play::Whole {
        world: |options, _| Setup { restart_rule: RESTARTED_SOON, has_links: true, ..whole_mesh(options) },
        is_new_for_each_seed: false,
        run: |world, seed| Box::pin(play(world, seed)),
    },
};

/// Runs the drill once.
async fn play(world: &World<'_>, seed: u64) -> Result<Run, Failure> {
    let plan = Plan::new(world);
    let traffic = |seed| Traffic::start(world, plan.paces, seed);
    print_line(&format!("seed {seed}: {:?} without an event", plan.warm_up));
    // The resource usage that is read afterwards is that of a warm mesh.
    let warming_up = traffic(!seed)?;
    warming_up.submit_during(0, warming_up.warm_up(plan.warm_up)).await;
    warming_up.finish().await?;
    let before = ResourceUsage::read(world.mesh).await;
    let counted = RefCell::new(EdgeRequestCount::begin(world.mesh).await);
    let schedule = plan.faults.draw(&mut SmallRng::seed_from_u64(seed));
    print_line(&format!("seed {seed}: {} acts in {:?}", schedule.len(), plan.faults.length));
    let lives = world.mesh.service_pids();

    let (heads, traffic) = (HeadObserver::watch(&world.servers), traffic(seed)?);
    let injector = FaultInjector::new(world.mesh).with_links(&world.links).counting(&traffic, &counted);
    let injecting = async {
        let done = injector.run(&schedule).await;
        print_line(&format!("seed {seed}: all is mended"));
        let is_ready = world.becomes_ready(READY_WITHIN).await;
        sleep(plan.quiet).await;
        (done, is_ready)
    };
    let (done, is_ready) = traffic.submit_during(seed, injecting).await;
    let (traffic, submitters) = traffic.finish().await?;
    let counted = counted.into_inner();
    let all_counted = counted.sum(world.mesh).await;
    let submissions = check_submissions(world, submitters).await?;

    let spans: Vec<FaultSpan> = done.iter().map(|done| done.span).collect();
    let misses = figures::misses(&traffic, &submissions.indefinite);
    let figures = figures::figures(done.len(), &traffic, &submissions, &misses);
    let mut report = Report::new(format!("seed {seed}"), figures);
    figures::true_answers(&mut report, &traffic, &submissions);
    none_is_outdated(&traffic.load, &heads, BLUR, &mut report);
    traffic.watches.are_true(&mut report);
    traffic.watches.describe_absences(&mut report);
    figures::explained(&mut report, &misses, &spans, plan.after);
    files_are_whole(&traffic.files, &mut report);
    report.bar("every replica serves when all is mended", is_ready);
    counts_hold(&mut report, &counted, all_counted, traffic.counts(&submissions));
    // Closes the connections of the load.
    drop(traffic);
    levels_hold(&mut report, world, &before, &lives).await;
    let faults: Vec<Value> = done.iter().map(fault_json).collect();
    let json = json!({ "found": report.json(), "acts": faults });
    let title = format!("chaos: seed {seed}, {REPLICAS} replicas each");
    Ok(Run { title, reports: vec![report], json })
}

/// Adds the bar that the edges' request counts agree with those of clients. Requests that a killed edge
/// counted after the last reading of its metrics are unknown (`gap`).
fn counts_hold(
    report: &mut Report,
    counted: &EdgeRequestCount,
    all: Option<u64>,
    (sent, answered): (u64, u64),
) {
    let EdgeRequestCount { kills, gap, .. } = counted;
    let description = format!(
        "requests that clients sent: {sent}, answers they got: {answered}, of which {gap} around {kills} kills of edges; \
         requests that the edges counted: {all:?}, at least {} and at most {sent}",
        answered.saturating_sub(*gap)
    );
    report.bar(description, all.is_some_and(|all| all + gap >= answered && all <= sent));
}

async fn levels_hold(report: &mut Report, world: &World<'_>, before: &ResourceUsage, lives: &[u32]) {
    let (now, exceeded) = before.wait_until_back(world.mesh, BACK_WITHIN).await;
    report.bar(
        format!("processes that keep more than before: {}, at most 0", exceeded.len()),
        exceeded.is_empty(),
    );
    let pids = world.mesh.service_pids();
    let lived = lives.iter().filter(|pid| pids.contains(pid)).count();
    report.notes.push(format!("{lived} of {} processes of services lived through it", lives.len()));
    report.notes.extend(before.comparison(&now));
    report.messages.extend(exceeded);
}

fn fault_json(done: &InjectedFault) -> Value {
    let (from, to) = done.span.when;
    json!({
        "atMs": done.scheduled.at.as_millis() as u64, "what": done.scheduled.fault.to_string(),
        "tookMs": (to - from).as_millis() as u64, "note": done.note,
    })
}
