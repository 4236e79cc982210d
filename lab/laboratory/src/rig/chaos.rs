//! `mesh rig chaos`: a random fault every few seconds under full traffic.
//!
//! A process is killed or frozen, a server restarted, or a network link delayed or cut while clients read,
//! download and submit. Every answer must be correct; every failed request must be reported as the contract
//! allows and be explained by a fault. Afterwards no process may use more resources than before, and the
//! edges' request counts must agree with those of their clients.

use std::{cell::RefCell, time::Duration};

use mesh::{failure::Failure, terminal::print_line};
use rand::{SeedableRng as _, rngs::SmallRng};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    args::{DOWNLOADS, MINUTES_20, Options, READ_RATE, SLACK, SUBMISSIONS, WATCHERS},
    clients::{
        download_results::Outcome,
        files::LEDGER,
        heads::HeadObserver,
        samples::{self, ReadResult},
        submitters::{IndefiniteSubmission, SubmissionOutcome},
    },
    engine::{Drill, Play, Run},
    faults::{
        explanation::{
            FailedRequest, FailureKind, FaultSpan, RequestKind, asked_after, failed_reads, is_explained,
        },
        injector::{FaultInjector, InjectedFault},
        schedule::RandomSchedule,
    },
    report::{Column, Report, in_ms},
    resource_usage::{EdgeRequestCount, ResourceUsage},
    traffic::{
        FinishedTraffic, Paces, SubmissionResults, Traffic, check_submissions, files_are_whole,
        none_is_outdated, whole_mesh,
    },
    world::{REPLICAS, Setup, World},
};
use crate::private::PrivateMesh;

/// Time between two faults, and their number in the short form.
const EVERY: [Duration; 2] = [Duration::from_secs(3), Duration::from_millis(1500)];
const FAULTS_SHORT: u32 = 6;
/// How long a freeze and a delay last.
const LASTS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(2)];
/// A process that was hit is not hit again for this long.
const BUSY: [Duration; 2] = [Duration::from_secs(8), Duration::from_secs(4)];
/// A fault explains failures of requests sent up to this long after its end.
const AFTER: Duration = Duration::from_secs(5);
/// How long traffic continues after the last repair; in the long form after that time, too.
const QUIET: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(3)];
/// How long traffic runs before the resource usage is first read.
const WARM_UP: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(3)];
/// Durations of throttled downloads: slow ones, and long ones in both forms.
const SLOW: Duration = Duration::from_secs(6);
const LONG: [Duration; 2] = [Duration::from_secs(25), SLOW];
/// Uncertainty of the measured age of an answer.
const BLUR: Duration = Duration::from_millis(500);
/// How long all replicas may take to be ready, and resource usage to return to its earlier level.
const READY_WITHIN: Duration = Duration::from_secs(60);
const BACK_WITHIN: Duration = Duration::from_secs(90);

pub(super) const DRILL: Drill = Drill {
    name: "chaos",
    about: "Injects random faults; no client may receive a wrong answer",
    options: &[SLACK, MINUTES_20, READ_RATE, DOWNLOADS, SUBMISSIONS, WATCHERS],
    play: Play::Own(|mesh, options, seed| Box::pin(play(mesh, options, seed))),
};

async fn play(mesh: &PrivateMesh, options: &Options, seed: u64) -> Result<Run, Failure> {
    let setup = Setup { has_links: true, ..whole_mesh(options) };
    let world = &World::start(mesh, options, setup, seed).await?;
    let play = &world.play;
    let [every, lasts, busy, warm_up, long] =
        [EVERY, LASTS, BUSY, WARM_UP, LONG].map(|times| play.either(times));
    let minutes = Duration::from_secs(u64::from(options.number("minutes")) * 60);
    let length = play.either([minutes, every * FAULTS_SHORT]);
    let after = play.bound(AFTER);
    let traffic = |seed| Traffic::start(world, Paces { slow: SLOW, long }, seed);
    print_line(&format!("seed {seed}: {warm_up:?} without an event"));
    // The resource usage that is read afterwards is that of a warm mesh.
    let warming_up = traffic(!seed)?;
    warming_up.submit_during(0, warming_up.warm_up(warm_up)).await;
    warming_up.finish().await?;
    let before = ResourceUsage::read(world.mesh).await;
    let counted = RefCell::new(EdgeRequestCount::begin(world.mesh).await);
    let faults = RandomSchedule { length, every, lasts, busy };
    let schedule = faults.draw(&mut SmallRng::seed_from_u64(seed));
    print_line(&format!("seed {seed}: {} acts in {length:?}", schedule.len()));

    let (heads, traffic) = (HeadObserver::watch(&world.servers), traffic(seed)?);
    let injector = FaultInjector::new(world.mesh).with_links(&world.links).counting(&traffic, &counted);
    let injecting = async {
        let done = injector.run(&schedule).await;
        print_line(&format!("seed {seed}: all is mended"));
        let is_ready = world.becomes_ready(READY_WITHIN).await;
        sleep(play.either([after, Duration::ZERO]) + play.either(QUIET)).await;
        (done, is_ready)
    };
    let (done, is_ready) = traffic.submit_during(seed, injecting).await;
    let (traffic, submitters) = traffic.finish().await?;
    let counted = counted.into_inner();
    let all_counted = counted.sum(world.mesh).await;
    let submissions = check_submissions(world, submitters).await?;

    let spans: Vec<FaultSpan> = done.iter().map(|done| done.span).collect();
    let misses = misses(&traffic, &submissions.indefinite);
    let figures = figures(done.len(), &traffic, &submissions, &misses);
    let mut report = Report::new(format!("seed {seed}"), figures);
    true_answers(&mut report, &traffic, &submissions);
    none_is_outdated(&traffic.load, &heads, BLUR, &mut report);
    traffic.watches.are_true(&mut report);
    traffic.watches.describe_absences(&mut report);
    explained(&mut report, &misses, &spans, after);
    files_are_whole(&traffic.files, &mut report);
    report.bar("every replica serves when all is mended", is_ready);
    counts_hold(&mut report, &counted, all_counted, traffic.counts(&submissions));
    // Closes the connections of the load.
    drop(traffic);
    let exceeded = before.wait_until_back(world.mesh, BACK_WITHIN).await;
    report.bar_none("processes that keep more than before", exceeded.len());
    report.messages.extend(exceeded);
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

fn fault_json(done: &InjectedFault) -> Value {
    let (from, to) = done.span.when;
    json!({
        "atMs": done.scheduled.at.as_millis() as u64, "what": done.scheduled.fault.to_string(),
        "tookMs": (to - from).as_millis() as u64, "note": done.note,
    })
}

/// Longest wait of a download: the edge aborts a stalled one after 30 s (contract X10), plus the time for
/// which an edge is frozen.
const STANDS_STILL_AT_MOST: Duration = Duration::from_secs(40);

/// The figures of a run with this number of faults.
fn figures(
    faults: usize,
    traffic: &FinishedTraffic,
    submissions: &SubmissionResults,
    misses: &[FailedRequest],
) -> Vec<Column> {
    let FinishedTraffic { load, end, attempts, files, watches } = traffic;
    let reads = samples::Figures::of(&load.samples(Duration::ZERO, *end), Duration::ZERO, *end);
    let missed = |kinds: &[RequestKind]| misses.iter().filter(|miss| kinds.contains(&miss.kind)).count();
    vec![
        Column::count("acts", "actsDone", faults),
        Column::count("reads", "reads", reads.requests),
        Column::count("missed", "readsMissed", missed(&[RequestKind::Read])),
        Column::time("p50 ms", "p50Ms", reads.p50),
        Column::time("longest", "longestMs", reads.longest),
        Column::count("downloads", "downloads", attempts.len()),
        Column::count("missed", "downloadsMissed", missed(&[RequestKind::History, RequestKind::Ledger])),
        Column::count("whole files", "wholeFiles", files.whole),
        Column::count("submissions", "submissions", submissions.counts.0),
        Column::count("missed", "submissionsMissed", missed(&[RequestKind::Submission])),
        Column::count("streams", "streams", watches.record.streams.len()),
        Column::count("events", "events", watches.record.answers()),
        Column::count("missed", "streamsMissed", missed(&[RequestKind::Watch])),
    ]
}

/// All failed requests.
fn misses(traffic: &FinishedTraffic, indefinite: &[IndefiniteSubmission]) -> Vec<FailedRequest> {
    let FinishedTraffic { load, attempts, watches, .. } = traffic;
    let reads = failed_reads(load).into_iter();
    let downloads = attempts.iter().filter_map(|attempt| {
        let failure = match &attempt.outcome {
            Outcome::Whole => return None,
            Outcome::Refused(refusal) if refusal.is_temporary() => FailureKind::Refused,
            Outcome::Broken(_) => FailureKind::Broken,
            Outcome::Refused(_) | Outcome::Wrong(_) | Outcome::Late => FailureKind::Other,
        };
        let kind = if attempt.path == LEDGER { RequestKind::Ledger } else { RequestKind::History };
        let message = format!(
            "{:?} after {} bytes, the longest wait {} ({})",
            attempt.outcome,
            attempt.bytes,
            in_ms(attempt.pause),
            attempt.path
        );
        Some(FailedRequest { kind, failure, when: (attempt.begun, attempt.ended), message })
    });
    let submissions = indefinite.iter().map(|indefinite| {
        let failure = match &indefinite.outcome {
            SubmissionOutcome::Unknown | SubmissionOutcome::NotTaken(_) => FailureKind::Refused,
            SubmissionOutcome::Lost(_) => FailureKind::Broken,
            SubmissionOutcome::Accepted
            | SubmissionOutcome::Refused(_)
            | SubmissionOutcome::Left
            | SubmissionOutcome::Unchecked
            | SubmissionOutcome::Other(_) => FailureKind::Other,
        };
        let message = format!("{:?} {}", indefinite.outcome, indefinite.message);
        FailedRequest { kind: RequestKind::Submission, failure, when: indefinite.when, message }
    });
    reads.chain(downloads).chain(submissions).chain(watches.record.misses()).collect()
}

/// Adds the bars that no read, download or submission got a false answer.
fn true_answers(report: &mut Report, traffic: &FinishedTraffic, submissions: &SubmissionResults) {
    let FinishedTraffic { load, end, attempts, .. } = traffic;
    let wrong: Vec<String> = load
        .failed()
        .into_iter()
        .filter(|sample| sample.result == ReadResult::Wrong)
        .filter_map(|sample| sample.message)
        .collect();
    let reads = load.samples(Duration::ZERO, *end).len();
    report.bar_none_of("reads whose answer cannot be true", wrong.len(), reads);
    let wrong_bytes: Vec<String> = attempts
        .iter()
        .filter_map(|attempt| match &attempt.outcome {
            Outcome::Wrong(what) => Some(format!("{what} ({})", attempt.path)),
            _ => None,
        })
        .collect();
    report.bar_none_of("downloads with a wrong byte or a wrong end", wrong_bytes.len(), attempts.len());
    submissions.agree(report);
    let wait = attempts.iter().map(|attempt| attempt.pause).max().unwrap_or_default();
    report.bar_at_most("the longest wait of a download for its next bytes", wait, STANDS_STILL_AT_MOST);
    report.messages.extend(wrong.into_iter().chain(wrong_bytes));
}

/// Adds the bar that a fault explains every failed request.
fn explained(report: &mut Report, misses: &[FailedRequest], spans: &[FaultSpan], after: Duration) {
    let unexplained = misses.iter().filter(|miss| !is_explained(miss, spans, after)).map(|miss| {
        let FailedRequest { kind, failure, when: (sent, ended), message } = miss;
        let since = asked_after(miss, spans).map_or_else(|| "never".to_owned(), in_ms);
        let took = (*ended - *sent).as_millis();
        format!("{since} after what explains it, {took} ms: {kind:?} {failure:?}: {message}")
    });
    let (all, after) = (misses.len(), in_ms(after));
    let what = format!("failed requests, of {all}, without a fault meanwhile or in the {after} before");
    report.bar_empty(&what, unexplained.collect());
}
