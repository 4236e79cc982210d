//! The traffic of the drills of the whole mesh: concurrent reads, downloads and submissions.

use std::{cell::Cell, future::Future, sync::Arc, time::Duration};

use mesh::failure::Failure;
use mesh_launcher::services::SERVICES;
use rand::{Rng as _, rngs::SmallRng};
use tokio::time::sleep;

use super::{
    clients::{
        consistency::{self, Contradiction},
        download::Pace,
        download_results::DownloadResult,
        downloaders::{Choose, Downloaders, FileCounts},
        heads::HeadObserver,
        load::{Load, NORMAL_P99},
        submitters::{self, IndefiniteSubmission, Submitters},
    },
    report::Report,
    watching::traffic::{WatchResults, WatchTraffic},
    world::{REPLICAS, Setup, World},
};
use crate::{private::UNCACHED_EDGE, rig::args::Options, synthetic::Synthetic};

/// Longest pause of a submitter between two submissions.
const PAUSE: Duration = Duration::from_millis(1800);
/// Average time from one submission of a client to its next, pause and answer included.
const TURN: Duration = Duration::from_millis(1100);
/// How long downloads in progress may take to finish at the end of a run.
const FINISH_WITHIN: Duration = Duration::from_secs(90);
/// Longest wait for normal service at the beginning.
const WARM_WITHIN: Duration = Duration::from_secs(30);
/// Greatest age of an answer (contract D6).
const OUTDATED_AT_MOST: Duration = Duration::from_secs(10);
/// One of this many downloads is slow enough to see its edge stop: several of eight, since a single one may end just
/// before.
const LONG_ONE_OF: u32 = 4;

/// The synthetic history of the long form and of the short one.
const PLAN: [Synthetic; 2] = [
    Synthetic { segments: 32, blocks: 1000, rows: 4000 },
    Synthetic { segments: 16, blocks: 1000, rows: 1500 },
];
const ENTRIES: [u32; 2] = [20_000, 1_000];
/// Time between two blocks, milliseconds; less in the short form, whose clients cannot wait long for a block.
const BLOCK_MS: [&str; 2] = ["1000", "300"];

/// The world of a drill of the whole mesh: two replicas of every service, and data for every kind of client.
pub(super) fn whole_mesh(options: &Options) -> Setup {
    let play = options.play();
    let mut replicas: Vec<(&str, u32)> = SERVICES.iter().map(|service| (service.name, REPLICAS)).collect();
    replicas.push((UNCACHED_EDGE, 0));
    Setup {
        has_rows: true,
        files: Some((play.either(PLAN), play.either(ENTRIES))),
        node_block_ms: Some(play.either(BLOCK_MS)),
        replicas,
        ..Setup::default()
    }
}

/// Chooses any file; about half of the downloads are quick, the others take up to `longest`.
pub(super) fn any_file(world: &World<'_>, longest: Duration) -> Arc<Choose> {
    let files = Arc::clone(&world.files);
    Arc::new(move |random: &mut SmallRng| {
        let expected = files.any(random);
        let pace = Pace::any(expected.bytes.len(), longest, random);
        (expected, pace)
    })
}

/// Chooses the whole history, downloaded evenly in half of this time to one and a half of it, so that several
/// downloads do not end together.
fn largest_file(world: &World<'_>, time: Duration) -> Arc<Choose> {
    let files = Arc::clone(&world.files);
    Arc::new(move |random: &mut SmallRng| {
        let expected = files.largest();
        let pace = Pace::within(expected.bytes.len(), time.mul_f64(random.random_range(0.5..1.5)));
        (expected, pace)
    })
}

/// Durations of throttled downloads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paces {
    /// Longest duration of a slow download.
    pub(super) slow: Duration,
    pub(super) long: Duration,
}

/// All clients of a run.
pub(super) struct Traffic {
    pub(super) load: Load,
    pub(super) downloaders: Downloaders,
    pub(super) submitters: Submitters,
    pub(super) watches: WatchTraffic,
}

/// The reads, downloads and watches of a run that is over.
pub(super) struct FinishedTraffic {
    pub(super) load: Load,
    /// When the load ended, on its clock.
    pub(super) end: Duration,
    pub(super) attempts: Vec<DownloadResult>,
    pub(super) files: FileCounts,
    pub(super) watches: WatchResults,
}

impl FinishedTraffic {
    /// Numbers of requests sent and of answers received, submissions included.
    pub(super) fn counts(&self, submissions: &SubmissionResults) -> (u64, u64) {
        let (reads, read_answers) = self.load.counts();
        let answered = self.attempts.iter().filter(|attempt| attempt.is_answered).count() as u64;
        let (sent, answers) = submissions.counts;
        let (watches, streams) = self.watches.record.counts;
        (reads + self.attempts.len() as u64 + sent + watches, read_answers + answered + answers + streams)
    }
}

#[derive(Debug, Default)]
pub(super) struct SubmissionResults {
    pub(super) transactions: usize,
    /// Numbers of submissions sent and of answers received.
    pub(super) counts: (u64, u64),
    /// Submissions without a definite answer.
    pub(super) indefinite: Vec<IndefiniteSubmission>,
    /// Descriptions of contradictions, each with its transaction.
    pub(super) contradictions: Vec<String>,
}

impl SubmissionResults {
    /// Adds the bar that no answers about a transaction contradict.
    pub(super) fn agree(&self, report: &mut Report) {
        let (found, all) = (self.contradictions.len(), self.transactions);
        report.bar_none_of("contradictions about transactions", found, all);
        report.messages.extend(self.contradictions.iter().cloned());
    }
}

/// Adds the bar that every file was complete in the end, resumed downloads included.
pub(super) fn files_are_whole(files: &FileCounts, report: &mut Report) {
    let FileCounts { lost, unfinished, whole, resumed } = files;
    report.bar(
        format!(
            "files that cannot be got: {lost}, or were not whole in the end: {unfinished}, at most 0; whole: {whole}, \
             of which resumed: {resumed}"
        ),
        lost + unfinished == 0 && *whole > 0,
    );
}

/// Adds the bar that no answer was older than allowed; `blur` is the uncertainty of the measurement.
pub(super) fn none_is_outdated(load: &Load, heads: &HeadObserver, blur: Duration, report: &mut Report) {
    let what = "how long the store had been further when an answer was asked for";
    report.bar_at_most(what, load.most_outdated(heads), OUTDATED_AT_MOST + blur);
}

impl Traffic {
    /// Starts reads, downloads and watches. Submissions start when the caller awaits [`Submitters::submit`].
    pub(super) fn start(world: &World<'_>, paces: Paces, seed: u64) -> Result<Self, Failure> {
        let [rate, downloads, submissions, watchers, web_sockets] =
            ["rate", "downloads", "submissions", "watchers", "web-sockets"]
                .map(|name| world.options.number(name));
        let edge = world.edges.cached;
        let clients = u64::from(submissions) * TURN.as_millis() as u64 / 1000;
        let plan = submitters::Plan { submissions: 0, clients: clients.max(1), pause: PAUSE };
        let submitters = Submitters::new(edge, plan, seed)?;
        let long = downloads / LONG_ONE_OF;
        let kinds = [
            ((downloads - long) as usize, any_file(world, paces.slow)),
            (long as usize, largest_file(world, paces.long)),
        ];
        let downloaders = Downloaders::start(edge, &kinds, Duration::ZERO, seed);
        let load = Load::start(world.read_requests.clone().mix(edge, edge), rate, seed)?;
        let watches = WatchTraffic::start(world, watchers as usize, web_sockets as usize)?;
        Ok(Self { load, downloaders, submitters, watches })
    }

    /// Waits at least this long, then until reads are fast and successful, at most [`WARM_WITHIN`] more: a
    /// mesh that has just started answers slowly.
    pub(super) async fn warm_up(&self, at_least: Duration) {
        sleep(at_least).await;
        self.load.becomes_normal(NORMAL_P99, WARM_WITHIN).await;
    }

    /// Submits transactions until the work is done; returns its output.
    pub(super) async fn submit_during<T>(&self, seed: u64, work: impl Future<Output = T>) -> T {
        let is_over = Cell::new(false);
        let work = async {
            let output = work.await;
            is_over.set(true);
            output
        };
        let (output, ()) = tokio::join!(work, self.submitters.submit(seed, || is_over.get()));
        output
    }

    /// Lets requests in progress finish, and ends all clients but the submitters, which must be over.
    pub(super) async fn finish(self) -> Result<(FinishedTraffic, Submitters), Failure> {
        let Self { load, downloaders, submitters, watches } = self;
        let watches = watches.end().await?;
        let end = load.finish().await;
        let (attempts, files) = downloaders.end(FINISH_WITHIN).await;
        Ok((FinishedTraffic { load, end, attempts, files, watches }, submitters))
    }

    /// Number of answers that clients received so far.
    pub(super) fn answers(&self) -> u64 {
        self.load.counts().1
            + self.submitters.counts().1
            + self.downloaders.counts().1
            + self.watches.counts().1
    }
}

/// Compares all answers about each transaction with its final state. All submissions must be over.
pub(super) async fn check_submissions(
    world: &World<'_>,
    submitters: Submitters,
) -> Result<SubmissionResults, Failure> {
    let node = world.idle_node().await?;
    let (counts, indefinite) = (submitters.counts(), submitters.indefinite());
    let checked = consistency::check(world.edges.cached, &node, submitters.submitted()).await?;
    let mut contradictions = Vec::new();
    for transaction in &checked {
        // A client whose connection broke got no answer; it is counted among the indefinite submissions.
        let kinds = transaction.contradictions.iter().filter(|kind| **kind != Contradiction::Lost);
        contradictions.extend(kinds.map(|kind| format!("{kind:?}: {}", transaction.description())));
    }
    Ok(SubmissionResults { transactions: checked.len(), counts, indefinite, contradictions })
}
