//! `mesh rig rolling`: repeated rolling restarts of every service, without a failed request. The edges have TLS
//! and keys, and their certificate is replaced once.
//!
//! Both replicas of each service, edges included, are replaced in turn while clients read,
//! download, submit and watch. A download that takes longer than an edge's grace period breaks when its edge
//! restarts, and its client resumes it.

use std::time::Duration;

use mesh::{failure::Failure, terminal::print_line};
use mesh_launcher::services::{GRACE_S, SERVICES};
use rand::{SeedableRng as _, rngs::SmallRng, seq::SliceRandom as _};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    args::{DOWNLOADS, Options, READ_RATE, ROUNDS, SLACK, SUBMISSIONS, WATCHERS, WEB_SOCKETS},
    clients::{
        download_results::{DownloadResult, Outcome},
        heads::HeadObserver,
        load::Load,
        samples::{self, Sample, latency},
        submitters::IndefiniteSubmission,
    },
    engine::{Drill, Play, Run},
    faults::{explanation::FaultSpan, schedule::Fault},
    report::{Column, Report},
    traffic::{
        FinishedTraffic, Paces, SubmissionResults, Traffic, check_submissions, files_are_whole,
        none_is_outdated, whole_mesh,
    },
    world::{REPLICAS, Setup, World},
};
use crate::private::PrivateMesh;

/// Length of the period without restarts.
const STEADY: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(3)];
/// How long clients are measured after each restart.
const AFTER: Duration = Duration::from_secs(1);
/// How long all replicas may take to be ready after a restart.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Greatest p99 during restarts, as a multiple of the p99 before.
const P99_TIMES: u32 = 3;
/// Grace period of services in the short form, seconds.
const GRACE_SHORT_S: u64 = 3;
/// How long traffic runs before anything is measured.
const WARM_UP: Duration = Duration::from_secs(3);

pub(super) const DRILL: Drill = Drill {
    name: "rolling",
    about: "Restarts every service in turn under reads, downloads, submissions and watches, over TLS and with \
        keys; no request may fail",
    options: &[SLACK, ROUNDS, READ_RATE, DOWNLOADS, SUBMISSIONS, WATCHERS, WEB_SOCKETS],
    play: Play::Own(|mesh, options, seed| Box::pin(run(mesh, options, seed))),
};

async fn run(mesh: &PrivateMesh, options: &Options, seed: u64) -> Result<Run, Failure> {
    let grace_s = options.play().either([GRACE_S, GRACE_SHORT_S]);
    let env = vec![("MESH_STOP_GRACE_S", grace_s.to_string())];
    let setup = Setup { env, is_public: true, ..whole_mesh(options) };
    let world = World::start(mesh, options, setup, seed).await?;
    let reports = play(&world, Duration::from_secs(grace_s), seed).await?;
    let phases: Vec<_> = reports.iter().map(Report::json).collect();
    let title = format!("rolling: seed {seed}, {REPLICAS} replicas each");
    Ok(Run { title, reports, json: json!({ "phases": phases }) })
}

/// Runs the drill once: first a period without restarts, then the rounds.
async fn play(world: &World<'_>, grace: Duration, seed: u64) -> Result<Vec<Report>, Failure> {
    let paces = Paces { slow: grace.mul_f64(0.4), long: grace.mul_f64(5.0) };
    let heads = HeadObserver::watch(&world.servers);
    let traffic = Traffic::start(world, paces, seed)?;
    let periods = traffic.submit_during(seed, rounds(world, &traffic, seed)).await?;
    let (FinishedTraffic { load, end, attempts, files, watches }, submitters) = traffic.finish().await?;
    let fates = check_submissions(world, submitters).await?;
    let report = |period: &Period| period.report(&load, &attempts, &fates.indefinite);
    let mut reports: Vec<Report> = periods.iter().map(report).collect();
    let (begun, rolled) = periods[0].on_load;
    let whole = Period { name: "all".to_owned(), on_load: (begun, end), when: None, reading: 0 };
    let mut all = report(&whole);
    all.messages = load.failure_messages(begun, end);
    let reads = samples::Figures::of(&load.samples(begun, end), begun, end);
    all.bar_none_of("reads that failed", reads.requests - reads.fine, reads.requests);
    none_is_outdated(&load, &heads, Duration::ZERO, &mut all);
    submissions_hold(&mut all, &fates);
    downloads_hold(&mut all, &attempts, grace);
    files_are_whole(&files, &mut all);
    watches.are_true(&mut all);
    watches.are_resumed(&mut all, &edge_restarts(&periods));
    latency_holds(&mut all, &load.samples(begun, rolled), &load.samples(rolled, end), world);
    downloads_are_resumed(&mut all, &attempts);
    reports.push(all);
    Ok(reports)
}

fn edge_restarts(periods: &[Period]) -> Vec<FaultSpan> {
    let edges = periods.iter().filter(|period| period.name.ends_with(" edge"));
    let span = |when| FaultSpan { fault: Fault::Restart("edge"), when };
    edges.filter_map(|period| period.when.map(span)).collect()
}

/// Measures a period without restarts, the replacement of the certificate, and then that of every service in
/// each round.
async fn rounds(world: &World<'_>, traffic: &Traffic, seed: u64) -> Result<Vec<Period>, Failure> {
    let mut random = SmallRng::seed_from_u64(seed);
    traffic.warm_up(WARM_UP).await;
    print_line(&format!("seed {seed}: steady"));
    let steady = async || {
        sleep(world.play.either(STEADY)).await;
        Ok(())
    };
    let mut periods = vec![observe(traffic, "steady", steady).await?];
    if let Some(public) = &world.public {
        periods.push(observe(traffic, "certificate", async || public.replace_certificate().await).await?);
    }
    for round in 1..=world.options.number("rounds") {
        let mut names: Vec<&str> = SERVICES.iter().map(|service| service.name).collect();
        names.shuffle(&mut random);
        print_line(&format!("seed {seed}, round {round}: {}", names.join(", ")));
        for name in names {
            let title = format!("{round} {name}");
            periods.push(observe(traffic, &title, async || restart(world, name).await).await?);
        }
    }
    Ok(periods)
}

/// Replaces the replicas of a service.
async fn restart(world: &World<'_>, name: &str) -> Result<(), Failure> {
    let (_, all_new) = world.mesh.restart(name).await?;
    if !all_new {
        return Err(Failure::failed(format!("not all replicas of {name} are new")));
    }
    if !world.becomes_ready(READY_WITHIN).await {
        return Err(Failure::failed(format!("after the restart of {name} not everything serves")));
    }
    sleep(AFTER).await;
    Ok(())
}

/// Measures the clients during an action.
async fn observe(
    traffic: &Traffic,
    name: &str,
    act: impl AsyncFnOnce() -> Result<(), Failure>,
) -> Result<Period, Failure> {
    let load = &traffic.load;
    let (from, begun, reading) = (load.now(), Instant::now(), traffic.downloaders.reading());
    act().await?;
    let to = load.now();
    load.until_finished(to).await;
    print_line(&format!("{name} took {:.1} s", (to - from).as_secs_f64()));
    let when = Some((begun, begun + (to - from)));
    Ok(Period { name: name.to_owned(), on_load: (from, to), when, reading })
}

fn submissions_hold(report: &mut Report, fates: &SubmissionResults) {
    let (begun, _) = fates.counts;
    let indefinite = fates.indefinite.len();
    report.bar_none_of("submissions without a definite answer", indefinite, begun as usize);
    fates.agree(report);
    report.messages.extend(fates.indefinite.iter().map(|indefinite| {
        let took = (indefinite.when.1 - indefinite.when.0).as_secs_f64();
        format!("to a submission after {took:.1} s: {:?} {}", indefinite.outcome, indefinite.message)
    }));
}

fn downloads_hold(report: &mut Report, attempts: &[DownloadResult], grace: Duration) {
    report.none_is_wrong(attempts);
    let is_wrong = |attempt: &DownloadResult| matches!(attempt.outcome, Outcome::Wrong(_) | Outcome::Late);
    let is_soon = |attempt: &DownloadResult| match attempt.outcome {
        Outcome::Broken(_) => attempt.ended - attempt.begun < grace,
        Outcome::Refused(_) => true,
        _ => false,
    };
    let what = format!("downloads refused, or broken before an edge's grace of {grace:?} was over");
    report.bar_none(&what, attempts.iter().filter(|attempt| is_soon(attempt)).count());
    let failed = attempts.iter().filter(|attempt| is_wrong(attempt) || is_soon(attempt));
    report.messages.extend(failed.map(|attempt| {
        format!(
            "to a download after {:.1} s: {:?} ({})",
            (attempt.ended - attempt.begun).as_secs_f64(),
            attempt.outcome,
            attempt.path
        )
    }));
}

/// Adds the bar that reads are about as fast during restarts as before; only a note in the short form.
fn latency_holds(report: &mut Report, steady: &[Sample], rolled: &[Sample], world: &World<'_>) {
    let (steady, rolling) = (latency(steady, 0.99), latency(rolled, 0.99));
    let p99 =
        format!("p99 while services were replaced {}, steady {}", in_tenths(rolling), in_tenths(steady));
    match world.play.short {
        true => report.notes.push(p99),
        false => report.bar(
            format!("{p99}, at most {P99_TIMES} times as much"),
            rolling <= steady * P99_TIMES * world.play.slack,
        ),
    }
}

/// Adds the bar that at least one broken download was resumed and completed.
fn downloads_are_resumed(report: &mut Report, attempts: &[DownloadResult]) {
    let whole = |attempt: &&DownloadResult| attempt.is_resumed && attempt.outcome == Outcome::Whole;
    let count = attempts.iter().filter(whole).count();
    report
        .bar(format!("downloads that were resumed after their edge stopped: {count}, at least 1"), count > 0);
}

fn in_tenths(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

struct Period {
    name: String,
    /// Beginning and end on the clock of the load.
    on_load: (Duration, Duration),
    /// Beginning and end; `None` for the whole run.
    when: Option<(Instant, Instant)>,
    /// Downloads in progress at the beginning.
    reading: usize,
}

impl Period {
    /// The report with the reads that were due in the period, and the downloads and submissions that ended in it.
    fn report(
        &self,
        load: &Load,
        attempts: &[DownloadResult],
        indefinite: &[IndefiniteSubmission],
    ) -> Report {
        let (from, to) = self.on_load;
        let reads = samples::Figures::of(&load.samples(from, to), from, to);
        let is_in = |moment: Instant| self.when.is_none_or(|(from, to)| moment >= from && moment < to);
        let ended = attempts.iter().filter(|attempt| is_in(attempt.ended));
        let is_broken = |attempt: &&DownloadResult| attempt.outcome != Outcome::Whole;
        let unsure = indefinite.iter().filter(|indefinite| is_in(indefinite.when.1)).count();
        let columns = vec![
            Column::count("reads", "reads", reads.requests),
            Column::count("failed", "failed", reads.requests - reads.fine),
            Column::count("again", "askedAgain", reads.again),
            Column::time("p50 ms", "p50Ms", reads.p50),
            Column::time("worst p99", "worstSecondP99Ms", reads.worst_p99),
            Column::time("longest", "longestMs", reads.longest),
            Column::count("downloading", "downloading", self.reading),
            Column::count("downloads", "downloads", ended.clone().count()),
            Column::count("broken", "broken", ended.filter(is_broken).count()),
            Column::count("unsure submissions", "unsureSubmissions", unsure),
        ];
        Report::new(&*self.name, columns)
    }
}
