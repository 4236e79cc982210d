//! `mesh rig fates`: every transaction has one final result, also when the node and relays are killed.
//!
//! Clients submit transactions through two relays, many of them repeatedly and with different submission
//! types, while the node and the relays are killed. Afterwards all answers about each transaction are
//! compared with the node's blocks, the relays' logs, and the status that the gateway then reports.

mod fixture;
mod relay_log;

use std::time::Duration;

use fixture::Fixture;
use mesh::{failure::Failure, terminal::print_line};

use super::{
    clients::submitters::{self, SubmissionOutcome},
    engine::{RESTARTED_SOON, Run, on_private_mesh, repeat},
    report::{self, Column},
    seed,
};
use crate::rig::args::RunArgs;

/// The report of a run.
type Report = report::Report<Figures>;

/// Load and kill intervals of a run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    submitting: submitters::Plan,
    node_killed_every: Duration,
    relay_killed_every: Duration,
}

const PLAN: Plan = Plan {
    submitting: submitters::Plan { submissions: 10_000, clients: 100, pause: Duration::from_millis(600) },
    node_killed_every: Duration::from_secs(5),
    relay_killed_every: Duration::from_secs(7),
};
const PLAN_SHORT: Plan = Plan {
    submitting: submitters::Plan { submissions: 240, clients: 20, pause: Duration::from_millis(200) },
    node_killed_every: Duration::from_secs(2),
    relay_killed_every: Duration::from_millis(1400),
};

/// Counts of answers and of transactions in blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Figures {
    submissions: usize,
    accepted: usize,
    refused: usize,
    unknown: usize,
    not_taken: usize,
    left: usize,
    transactions: usize,
    in_blocks: usize,
}

impl Figures {
    /// Counts a submission by its outcome.
    fn count(&mut self, outcome: &SubmissionOutcome) {
        self.submissions += 1;
        match outcome {
            SubmissionOutcome::Accepted => self.accepted += 1,
            SubmissionOutcome::Refused(_) => self.refused += 1,
            SubmissionOutcome::Unknown | SubmissionOutcome::Unchecked => self.unknown += 1,
            SubmissionOutcome::NotTaken(_) => self.not_taken += 1,
            SubmissionOutcome::Left => self.left += 1,
            SubmissionOutcome::Lost(_) | SubmissionOutcome::Other(_) => {}
        }
    }
}

impl report::Figures for Figures {
    fn columns(&self) -> Vec<Column> {
        vec![
            Column::count("submissions", "submissions", self.submissions),
            Column::count("accepted", "accepted", self.accepted),
            Column::count("refused", "refused", self.refused),
            Column::count("unknown", "unknown", self.unknown),
            Column::count("not taken", "notTaken", self.not_taken),
            Column::count("left", "left", self.left),
            Column::count("transactions", "transactions", self.transactions),
            Column::count("in blocks", "inBlocks", self.in_blocks),
        ]
    }
}

/// Runs the drill.
///
/// # Errors
/// When a bar does not hold, or the drill cannot be run.
pub(super) async fn drill(args: &RunArgs) -> Result<(), Failure> {
    on_private_mesh(RESTARTED_SOON, async |mesh| {
        let first = seed(args.seed);
        let plan = if args.short { PLAN_SHORT } else { PLAN };
        let fixture = Fixture::start(mesh, plan).await?;
        let Plan { submitting, node_killed_every: node, relay_killed_every: relay } = plan;
        let clients = submitting.clients;
        let title =
            format!("fates: {clients} clients, the node killed every {node:?}, a relay every {relay:?}");
        repeat("fates", args, first, async |seed| {
            print_line(&format!("playing seed {seed}"));
            let report = fixture.play(seed).await?;
            Ok(Run { title: title.clone(), json: report.json(), reports: vec![report] })
        })
        .await
    })
    .await
}
