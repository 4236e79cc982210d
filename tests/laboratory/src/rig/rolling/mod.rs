//! `mesh rig rolling`: repeated rolling restarts of every service, without a failed request.
//!
//! Both replicas of each service, edges included, are replaced in turn while clients read,
//! download, submit and watch. A download that takes longer than an edge's grace period breaks when its edge
//! restarts, and its client resumes it.

mod figures;

use std::{sync::Arc, time::Duration};

use figures::{Figures, Report};
use mesh::{failure::Failure, terminal::print_line};
use mesh_launcher::{
    RestartRule, open_files,
    services::{GRACE_S, SERVICES},
};
use rand::{SeedableRng as _, rngs::SmallRng, seq::SliceRandom as _};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    clients::{
        download_results::{DownloadResult, Outcome},
        heads::HeadObserver,
        samples::{Sample, quantile},
    },
    engine::{Run, on_private_mesh, repeat},
    environment::{Environment, REPLICAS},
    faults::{explanation::FaultSpan, schedule::Fault},
    seed,
    traffic::{
        FinishedTraffic, Paces, SubmissionResults, Traffic, check_submissions, files_are_whole,
        none_is_outdated,
    },
};
use crate::rig::args::RollingArgs;

/// Length of the period without restarts.
const STEADY: Duration = Duration::from_secs(10);
const STEADY_SHORT: Duration = Duration::from_secs(3);
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

/// Runs the drill.
///
/// # Errors
/// When a bar does not hold, or the drill cannot be run.
pub(super) async fn drill(args: &RollingArgs) -> Result<(), Failure> {
    open_files::raise();
    on_private_mesh(RestartRule::default(), async |mesh| {
        let first = seed(args.play.run.seed);
        let is_short = args.play.run.short;
        let grace_s = if is_short { GRACE_SHORT_S } else { GRACE_S };
        let grace = vec![("MESH_STOP_GRACE_S".to_owned(), grace_s.to_string())];
        let environment = Environment::start(mesh, is_short, first, async move |_, _| {
            Ok(Arc::new(move |_: &str, _: u32| grace.clone()) as _)
        })
        .await?;
        repeat("rolling", &args.play.run, first, async |seed| {
            let reports = play(&environment, args, Duration::from_secs(grace_s), seed).await?;
            let phases: Vec<_> = reports.iter().map(Report::json).collect();
            let title = format!("rolling: seed {seed}, {REPLICAS} replicas each");
            Ok(Run { title, reports, json: json!({ "phases": phases }) })
        })
        .await
    })
    .await
}

/// Runs the drill once: first a period without restarts, then the rounds.
async fn play(
    environment: &Environment<'_>,
    args: &RollingArgs,
    grace: Duration,
    seed: u64,
) -> Result<Vec<Report>, Failure> {
    let paces = Paces { slow: grace.mul_f64(0.4), long: grace.mul_f64(5.0) };
    let heads = HeadObserver::watch(&environment.servers);
    let traffic = Traffic::start(environment, environment.edge, args.traffic, paces, seed)?;
    let reports = traffic.submit_during(seed, rounds(environment, args, &traffic, seed)).await;
    let mut reports = reports?;
    let (FinishedTraffic { load, end, attempts, files, watches }, submitters) = traffic.finish().await?;
    let fates = check_submissions(environment, submitters).await?;
    for report in &mut reports {
        report.figures.count(&attempts, &fates.indefinite);
    }
    let (begun, rolled) = (reports[0].figures.from, reports[0].figures.to);
    let mut all = Report::new("all", Figures::of(&load, begun, end));
    all.figures.count(&attempts, &fates.indefinite);
    all.messages = load.failure_messages(begun, end);
    all.bar(
        format!("reads that failed: {} of {}, at most 0", all.figures.failed, all.figures.reads),
        all.figures.failed == 0 && all.figures.reads > 0,
    );
    none_is_outdated(&load, &heads, Duration::ZERO, &mut all);
    let (sent, answers) = load.counts();
    all.notes.push(format!("{sent} reads were sent, {answers} answered"));
    submissions_hold(&mut all, &fates);
    downloads_hold(&mut all, &attempts, grace);
    files_are_whole(&files, &mut all);
    watches.are_true(&mut all);
    watches.are_resumed(&mut all, &edge_restarts(&reports));
    latency_holds(&mut all, &load.samples(begun, rolled), &load.samples(rolled, end), args);
    // Without a restart of edges no download breaks.
    if args.service.is_empty() || args.service.iter().any(|name| name == "edge") {
        downloads_are_resumed(&mut all, &attempts);
    }
    reports.push(all);
    Ok(reports)
}

/// The restarts of the edges.
fn edge_restarts(reports: &[Report]) -> Vec<FaultSpan> {
    let edges = reports.iter().filter(|report| report.name.ends_with(" edge"));
    let span = |when| FaultSpan { fault: Fault::Restart("edge"), when };
    edges.filter_map(|report| report.figures.when.map(span)).collect()
}

/// Measures a period without restarts, and then the replacement of every service in each round.
async fn rounds(
    environment: &Environment<'_>,
    args: &RollingArgs,
    traffic: &Traffic,
    seed: u64,
) -> Result<Vec<Report>, Failure> {
    let mut random = SmallRng::seed_from_u64(seed);
    traffic.warm_up(WARM_UP).await;
    let observer = ClientObserver { traffic };
    print_line(&format!("seed {seed}: steady"));
    let steady = async || {
        sleep(if args.play.run.short { STEADY_SHORT } else { STEADY }).await;
        Ok(())
    };
    let mut reports = vec![observer.observe("steady", steady).await?];
    for round in 1..=args.rounds {
        let mut names: Vec<&str> = SERVICES.iter().map(|service| service.name).collect();
        names.retain(|name| args.service.is_empty() || args.service.iter().any(|wanted| wanted == name));
        names.shuffle(&mut random);
        print_line(&format!("seed {seed}, round {round}: {}", names.join(", ")));
        for name in names {
            let title = format!("{round} {name}");
            reports.push(observer.observe(&title, async || restart(environment, name).await).await?);
        }
    }
    Ok(reports)
}

/// Replaces the replicas of a service.
async fn restart(environment: &Environment<'_>, name: &str) -> Result<(), Failure> {
    let (_, all_new) = environment.mesh.restart(name).await?;
    if !all_new {
        return Err(Failure::failed(format!("not all replicas of {name} are new")));
    }
    if !environment.becomes_ready(READY_WITHIN).await {
        return Err(Failure::failed(format!("after the restart of {name} not everything serves")));
    }
    sleep(AFTER).await;
    Ok(())
}

/// Measures the clients during an action.
struct ClientObserver<'a> {
    traffic: &'a Traffic,
}

impl ClientObserver<'_> {
    async fn observe(
        &self,
        name: &str,
        act: impl AsyncFnOnce() -> Result<(), Failure>,
    ) -> Result<Report, Failure> {
        let load = &self.traffic.load;
        let (from, begun, reading) = (load.now(), Instant::now(), self.traffic.downloaders.reading());
        act().await?;
        let to = load.now();
        load.until_finished(to).await;
        let mut figures = Figures::of(load, from, to);
        (figures.reading, figures.when) = (reading, Some((begun, begun + (to - from))));
        print_line(&format!("{name} took {:.1} s", (to - from).as_secs_f64()));
        Ok(Report::new(name, figures))
    }
}

fn submissions_hold(report: &mut Report, fates: &SubmissionResults) {
    let (begun, _) = fates.counts;
    report.bar(
        format!("submissions without a definite answer: {} of {begun}, at most 0", fates.indefinite.len()),
        fates.indefinite.is_empty() && begun > 0,
    );
    fates.agree(report);
    report.messages.extend(fates.indefinite.iter().map(|indefinite| {
        let took = (indefinite.when.1 - indefinite.when.0).as_secs_f64();
        format!("to a submission after {took:.1} s: {:?} {}", indefinite.outcome, indefinite.message)
    }));
}

fn downloads_hold(report: &mut Report, attempts: &[DownloadResult], grace: Duration) {
    let wrong: Vec<&DownloadResult> = attempts
        .iter()
        .filter(|attempt| matches!(attempt.outcome, Outcome::Wrong(_) | Outcome::Late))
        .collect();
    report.bar(
        format!(
            "downloads that were wrong or came to nothing: {} of {}, at most 0",
            wrong.len(),
            attempts.len()
        ),
        wrong.is_empty() && !attempts.is_empty(),
    );
    let soon: Vec<&DownloadResult> = attempts
        .iter()
        .filter(|attempt| match attempt.outcome {
            Outcome::Broken(_) => attempt.ended - attempt.begun < grace,
            Outcome::Refused(_) => true,
            _ => false,
        })
        .collect();
    report.bar(
        format!(
            "downloads refused, or broken before an edge's grace of {grace:?} was over: {}, at most 0",
            soon.len()
        ),
        soon.is_empty(),
    );
    let failed = wrong.into_iter().chain(soon);
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
fn latency_holds(report: &mut Report, steady: &[Sample], rolled: &[Sample], args: &RollingArgs) {
    let p99 = |samples: &[Sample]| quantile(samples.iter().map(|sample| sample.took).collect(), 0.99);
    let (steady, rolling) = (p99(steady), p99(rolled));
    let p99 =
        format!("p99 while services were replaced {}, steady {}", in_tenths(rolling), in_tenths(steady));
    match args.play.run.short {
        true => report.notes.push(p99),
        false => report.bar(
            format!("{p99}, at most {P99_TIMES} times as much"),
            rolling <= steady * P99_TIMES * args.play.slack,
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
