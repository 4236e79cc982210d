//! What goes on while a drill of the whole mesh does something to it: reads, downloads and submissions, all
//! at once.

use std::{net::SocketAddr, time::Duration};

use mesh::failure::Failure;
use tokio::time::{Instant, sleep};

use super::{
    clients::{
        downloaders::{Downloaders, Ended, Try},
        heads::Heads,
        judge::{Contradiction, contradictions, truths},
        load::Load,
        samples,
        submitters::{self, Odd, Submitters},
    },
    ground::Ground,
    report::{self, Report},
};
use crate::rig::args::TrafficArgs;

/// A submitter's pause between two submissions, at most.
const PAUSE: Duration = Duration::from_millis(1800);
/// What it takes on average, the answer included: some wait for a block.
const TURN: Duration = Duration::from_millis(1100);
/// How long downloads that were begun may take when all is over.
const FINISH_WITHIN: Duration = Duration::from_secs(90);
/// What is usual: no failure in this long, and times below the next figure; and how long it may take until it
/// is so.
const USUAL_FOR: Duration = Duration::from_secs(1);
const USUAL_P99: Duration = Duration::from_millis(250);
const WARM_WITHIN: Duration = Duration::from_secs(30);
/// An answer is at most so much behind the store (D6).
const OUTDATED_AT_MOST: Duration = Duration::from_secs(10);
/// A part of the clients that download take so long that they see the end of an edge.
const LONG_ONE_OF: u32 = 5;

/// How downloads go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paces {
    /// How long a slow one takes at most.
    pub(super) slow: Duration,
    /// How long a long one takes.
    pub(super) long: Duration,
}

/// All clients of a run.
pub(super) struct Traffic {
    pub(super) load: Load,
    pub(super) downloaders: Downloaders,
    pub(super) submitters: Submitters,
}

/// What became of submissions.
#[derive(Debug, Default)]
pub(super) struct Fates {
    /// Transactions.
    pub(super) transactions: usize,
    /// Submissions that were begun, and answers that came.
    pub(super) counts: (u64, u64),
    /// Submissions without a definite answer.
    pub(super) odd: Vec<Odd>,
    /// What contradicts, with the transaction.
    pub(super) contradictions: Vec<String>,
}

impl Fates {
    /// Adds that nobody was told what contradicts.
    pub(super) fn agree<F: report::Figures>(&self, report: &mut Report<F>) {
        let count = self.contradictions.len();
        report.bar(
            format!("contradictions about {} transactions: {count}, at most 0", self.transactions),
            count == 0 && self.transactions > 0,
        );
        report.said.extend(self.contradictions.iter().cloned());
    }
}

/// Adds that every file came whole in the end, however often its download broke off.
pub(super) fn files_are_whole<F: report::Figures>(files: &Ended, report: &mut Report<F>) {
    let Ended { lost, unfinished, whole, resumed } = files;
    report.bar(
        format!(
            "files that cannot be got: {lost}, or were not whole in the end: {unfinished}, at most 0; whole: {whole}, \
             of which resumed: {resumed}"
        ),
        lost + unfinished == 0 && *whole > 0,
    );
}

/// Adds that no answer was of an older block than answers may be.
pub(super) fn none_is_outdated<F: report::Figures>(
    load: &Load,
    heads: &Heads,
    blur: Duration,
    report: &mut Report<F>,
) {
    let what = "how long the store had been further when an answer was asked for";
    report.keeps(what, load.most_outdated(heads), OUTDATED_AT_MOST + blur);
}

impl Traffic {
    /// Begins to read and to download; [`Submitters::submit`] is for the caller to wait for.
    pub(super) fn start(
        ground: &Ground<'_>,
        edge: SocketAddr,
        args: TrafficArgs,
        paces: Paces,
        seed: u64,
    ) -> Result<Self, Failure> {
        let TrafficArgs { rate, downloads, submissions } = args;
        let clients = u64::from(submissions) * TURN.as_millis() as u64 / 1000;
        let plan = submitters::Plan { submissions: 0, clients: clients.max(1), pause: PAUSE };
        let submitters = Submitters::new(edge, plan, seed)?;
        let long = downloads / LONG_ONE_OF;
        let kinds = [
            ((downloads - long) as usize, ground.any_file(paces.slow)),
            (long as usize, ground.largest_file(paces.long)),
        ];
        let downloaders = Downloaders::start(edge, &kinds, seed);
        let load = Load::start(ground.questions.clone().mix(edge, edge), rate, seed)?;
        Ok(Self { load, downloaders, submitters })
    }
}

impl Traffic {
    /// Waits until reads are as usual, some seconds at least and not for ever: a mesh that has just begun
    /// answers slowly.
    pub(super) async fn warm_up(&self, at_least: Duration) {
        sleep(at_least).await;
        let deadline = Instant::now() + WARM_WITHIN;
        while Instant::now() < deadline {
            let to = self.load.now();
            let from = to.saturating_sub(USUAL_FOR);
            let figures = samples::Figures::of(&self.load.samples(from, to), from, to);
            if figures.requests > 0 && figures.fine == figures.requests && figures.worst_p99 < USUAL_P99 {
                return;
            }
            sleep(USUAL_FOR / 4).await;
        }
    }

    /// Answers that clients got so far.
    pub(super) fn answers(&self) -> u64 {
        self.load.counts().1 + self.submitters.counts().1 + self.downloaders.counts().1
    }
}

/// Lets downloads end.
pub(super) async fn downloaded(downloaders: Downloaders) -> (Vec<Try>, Ended) {
    downloaders.end(FINISH_WITHIN).await
}

/// Holds all that was said of each transaction against what is true of it, when nobody submits any more.
pub(super) async fn fates(ground: &Ground<'_>, submitters: Submitters) -> Result<Fates, Failure> {
    let node = ground.idle_node().await?;
    let (counts, odd) = (submitters.counts(), submitters.odd());
    let submitted = submitters.submitted();
    let truths = truths(ground.edge, &node, &submitted).await?;
    let mut found = Vec::new();
    for (submitted, truth) in submitted.iter().zip(&truths) {
        let kinds = contradictions(submitted, truth);
        // Whoever lost his connection was told nothing; that is counted among the odd ones.
        for kind in kinds.into_iter().filter(|kind| *kind != Contradiction::Lost) {
            found.push(format!(
                "{kind:?}: {} in a block: {}, told as {:?}, said to clients: {:?}",
                submitted.hash, truth.is_included, truth.status, submitted.told
            ));
        }
    }
    Ok(Fates { transactions: submitted.len(), counts, odd, contradictions: found })
}
