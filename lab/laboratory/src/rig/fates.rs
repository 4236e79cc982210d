//! `mesh rig fates`: every transaction has one final result, also when the node and relays fail.
//!
//! Clients submit transactions through two or three relays, many of them repeatedly and with different submission
//! types, and follow each until its state is final, while the node is killed and relays are killed, frozen and
//! stopped. Afterwards all answers about each transaction are compared with the node's blocks, the relays' logs,
//! and the status that the gateway then reports.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use futures_util::FutureExt as _;
use mesh::{
    failure::{Failure, cannot},
    processes::DEVNODE,
};
use mesh_devnode::received;
use mesh_transaction::TxHash;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use serde::Deserialize;

use super::{
    args::Options,
    clients::{
        consistency::{CheckedTransaction, check},
        followers::Followers,
        submitters::{self, SubmissionOutcome, Submitters},
    },
    engine::{Drill, Play, Run},
    faults::{
        injector::FaultInjector,
        schedule::{Fault, NODE, Target, repeated},
    },
    report::{Column, Report},
    world::{Setup, World, calls},
};
use crate::private::{PrivateMesh, UNCACHED_EDGE};

const RELAY: &str = "tx-relay";
/// Least number of faults of the node, and of relays.
const FAULTS: usize = 2;
/// How long a relay is frozen.
const FROZEN_FOR: Duration = Duration::from_millis(1500);
/// Time between two blocks, milliseconds.
const BLOCK_MS: &str = "300";
/// How long node and relays may take to be ready after their last fault.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// The number of relays of a run: two for an even seed, three for an odd one.
fn relays(seed: u64) -> u32 {
    if seed.is_multiple_of(2) { 2 } else { 3 }
}

/// The load, and the time between two faults of the node and of relays.
const SUBMITTING: [submitters::Plan; 2] = [
    submitters::Plan { submissions: 10_000, clients: 100, pause: Duration::from_millis(600) },
    submitters::Plan { submissions: 240, clients: 20, pause: Duration::from_millis(200) },
];
const NODE_EVERY: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(2)];
const RELAY_EVERY: [Duration; 2] = [Duration::from_secs(7), Duration::from_millis(1400)];

pub(super) const DRILL: Drill = Drill {
    name: "fates",
    about: "Kills the node and the relays under submissions; every transaction must have exactly one outcome",
    options: &[],
    play: Play::Own(|mesh, options, seed| Box::pin(run(mesh, options, seed))),
};

async fn run(mesh: &PrivateMesh, options: &Options, seed: u64) -> Result<Run, Failure> {
    let setup = Setup {
        node_block_ms: Some(BLOCK_MS),
        replicas: vec![("query", 0), ("export", 0), (UNCACHED_EDGE, 0), (RELAY, relays(seed))],
        // At this level relays log each transaction that they send.
        env: vec![("MESH_LOG", "tx_relay=debug,info".to_owned())],
        ..Setup::default()
    };
    let world = &World::start(mesh, options, setup, seed).await?;
    let report = play(world, seed).await?;
    let (clients, relays) = (world.play.either(SUBMITTING).clients, relays(seed));
    let [node, relay] = [NODE_EVERY, RELAY_EVERY].map(|every| world.play.either(every));
    let title = format!(
        "fates: {clients} clients, {relays} relays, the node killed every {node:?}, \
         a relay killed, frozen or stopped every {relay:?}"
    );
    Ok(Run { title, json: report.json(), reports: vec![report] })
}

async fn play(world: &World<'_>, seed: u64) -> Result<Report, Failure> {
    let (edge, relays) = (world.edges.cached, relays(seed));
    let submitters = Submitters::new(edge, world.play.either(SUBMITTING), seed)?.following(edge);
    let injectors = [FaultInjector::new(world.mesh), FaultInjector::new(world.mesh)];
    // A fast machine may need more submissions than planned until the kills are done.
    let is_enough = || injectors.iter().all(|injector| injector.injected().len() >= FAULTS);
    let submitting = submitters.submit(seed, is_enough).boxed_local().shared();
    let mut random = SmallRng::seed_from_u64(seed);
    let node_faults = repeated(world.play.either(NODE_EVERY), || Fault::Kill(NODE));
    let relay_faults = repeated(world.play.either(RELAY_EVERY), || {
        let relay = Target { name: RELAY, replica: random.random_range(0..relays) };
        match random.random_range(0..3) {
            0 => Fault::Kill(relay),
            1 => Fault::Stop(relay),
            _ => Fault::Freeze(relay, FROZEN_FOR),
        }
    });
    tokio::join!(
        injectors[0].run_until(node_faults, 1, submitting.clone()),
        injectors[1].run_until(relay_faults, 1, submitting),
    );
    if !world.mesh.until_serving(&[DEVNODE, RELAY], BACK_WITHIN).await {
        return Err(Failure::failed(format!("node and relays do not serve within {BACK_WITHIN:?}")));
    }
    let node = world.idle_node().await?;
    let followed = submitters.followers().map(Followers::found).unwrap_or_default();
    let checked = check(edge, &node, submitters.submitted()).await?;
    let sent = sent(world, relays, &checked)?;
    let calls = received(&calls(world.mesh)).map_err(|error| cannot("read the node's record", &error))?;
    let mut report = reported(seed, &checked, sent, &calls);
    let faults =
        injectors.map(|injector| injector.injected().iter().filter(|fault| fault.is_repaired).count());
    let [node, relay] = faults;
    report.bar(
        format!("faults of the node {node}, of relays {relay}, at least {FAULTS} each"),
        faults.iter().all(|faults| *faults >= FAULTS),
    );
    let (states, unanswered, backwards) = followed;
    let what = format!("steps backwards among {states} states that clients received");
    report.bar_empty(&what, backwards);
    report.notes.push(format!("reads of a state without an answer: {unanswered}"));
    Ok(report)
}

/// Reads the logs of the relays.
fn sent(world: &World<'_>, relays: u32, checked: &[CheckedTransaction]) -> Result<RelayLog, Failure> {
    let of: HashSet<TxHash> = checked.iter().map(|checked| checked.submitted.hash).collect();
    let mut sent = RelayLog::default();
    for replica in 0..relays {
        let log = std::fs::read(world.mesh.home.log(RELAY, replica));
        let log = log.map_err(|error| cannot("read a relay's log", &error))?;
        sent.read(&String::from_utf8_lossy(&log), &of);
    }
    Ok(sent)
}

/// Counts of answers and of transactions in blocks.
fn figures(checked: &[CheckedTransaction]) -> Vec<Column> {
    use SubmissionOutcome::{Accepted, Left, NotTaken, Refused, Unchecked, Unknown};
    let outcomes: Vec<&SubmissionOutcome> =
        checked.iter().flat_map(|checked| &checked.submitted.outcomes).collect();
    let count =
        |test: fn(&SubmissionOutcome) -> bool| outcomes.iter().filter(|outcome| test(outcome)).count();
    let in_blocks = checked.iter().filter(|checked| checked.is_included).count();
    vec![
        Column::count("submissions", "submissions", outcomes.len()),
        Column::count("accepted", "accepted", count(|outcome| matches!(outcome, Accepted))),
        Column::count("refused", "refused", count(|outcome| matches!(outcome, Refused(_)))),
        Column::count("unknown", "unknown", count(|outcome| matches!(outcome, Unknown | Unchecked))),
        Column::count("not taken", "notTaken", count(|outcome| matches!(outcome, NotTaken(_)))),
        Column::count("left", "left", count(|outcome| matches!(outcome, Left))),
        Column::count("transactions", "transactions", checked.len()),
        Column::count("in blocks", "inBlocks", in_blocks),
    ]
}

fn reported(
    seed: u64,
    checked: &[CheckedTransaction],
    sent: RelayLog,
    calls: &HashMap<TxHash, u64>,
) -> Report {
    let is_unsent = |checked: &&CheckedTransaction| {
        let of =
            |counts: &HashMap<TxHash, u64>| counts.get(&checked.submitted.hash).copied().unwrap_or_default();
        of(calls) > of(&sent.times)
    };
    let unsent = checked.iter().filter(is_unsent).count();
    let texts = checked.iter().flat_map(|checked| {
        checked.contradictions.iter().map(move |kind| format!("{kind:?}: {}", checked.description()))
    });
    let found: Vec<String> = texts.collect();
    let mut report = Report::new(format!("seed {seed}"), figures(checked));
    report.bar_none_of("contradictions about transactions", found.len(), checked.len());
    report.messages.extend(found);
    report.bar_empty("sent again by the same life of a relay without a reason", sent.wrong);
    report.bar_none("transactions that the node got more often than relays sent them", unsent);
    report
}

/// What the relays sent to the node, summed over their logs: each log has a line when a transaction is sent to the node,
/// and one when its submission is settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RelayLog {
    /// How often each transaction was sent by all processes, queries about the node's cache included.
    times: HashMap<TxHash, u64>,
    /// Descriptions of transactions sent again for no valid reason.
    wrong: Vec<String>,
}

/// The members of a log line that are read here.
#[derive(Debug, Deserialize)]
struct Line {
    message: String,
    #[serde(default)]
    hash: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    asks_again: bool,
    #[serde(default)]
    outcome: String,
}

/// What one relay process knows about a transaction.
#[derive(Debug, Default)]
struct TransactionState {
    is_under_way: bool,
    /// Strength of the strongest answer so far (see [`strength`]).
    answered: Option<u8>,
}

impl RelayLog {
    /// Adds the log of one replica, all its processes included, for these transactions.
    fn read(&mut self, log: &str, of: &HashSet<TxHash>) {
        let mut process = HashMap::<TxHash, TransactionState>::new();
        for line in log.lines() {
            // A line truncated by a kill is followed by the next process's first line without a line break.
            let begins = line.rfind("{\"timestamp\"").unwrap_or_default();
            let Ok(line) = serde_json::from_str::<Line>(&line[begins..]) else { continue };
            if line.message == "started" {
                process.clear();
                continue;
            }
            let Ok(hash) = line.hash.parse::<TxHash>() else { continue };
            if !of.contains(&hash) {
                continue;
            }
            let known = process.entry(hash).or_default();
            let strength = strength(&line.kind);
            match &*line.message {
                "a transaction goes to the node" => {
                    *self.times.entry(hash).or_default() += 1;
                    // The node had answered that it is in its cache, or might have lost it, or another relay's submission
                    // was not answered.
                    if line.asks_again {
                        continue;
                    }
                    if known.is_under_way {
                        self.wrong.push(format!("{hash} was sent while it was under way"));
                    } else if known.answered >= Some(strength) {
                        self.wrong.push(format!("{hash} was sent again though there was an answer"));
                    }
                    known.is_under_way = true;
                }
                "a submission is settled" => {
                    known.is_under_way = false;
                    let answered = match &*line.outcome {
                        "accepted" => Some(strength),
                        // After a refusal the transaction must never be sent again.
                        "refused" => Some(u8::MAX),
                        _ => None,
                    };
                    known.answered = known.answered.max(answered);
                }
                _ => {}
            }
        }
    }
}

fn strength(kind: &str) -> u8 {
    match kind {
        "async" => 0,
        "sync" => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> TxHash {
        TxHash::of(&[number])
    }

    fn goes(number: u8, kind: &str, asks_again: bool) -> String {
        format!(
            "{{\"timestamp\":\"t\",\"message\":\"a transaction goes to the node\",\"hash\":\"{}\",\
             \"kind\":\"{kind}\",\"asks_again\":{asks_again}}}",
            hash(number)
        )
    }

    fn settled(number: u8, kind: &str, outcome: &str) -> String {
        format!(
            "{{\"timestamp\":\"t\",\"message\":\"a submission is settled\",\"hash\":\"{}\",\
             \"kind\":\"{kind}\",\"outcome\":\"{outcome}\"}}",
            hash(number)
        )
    }

    fn sent(lines: &[String]) -> RelayLog {
        let mut sent = RelayLog::default();
        sent.read(&lines.join("\n"), &(0..9).map(hash).collect());
        sent
    }

    #[test]
    fn a_process_sends_once_unless_a_stronger_answer_is_requested_or_the_result_is_unknown() {
        let started = "{\"timestamp\":\"t\",\"message\":\"started\"}".to_owned();
        let lines = [
            started.clone(),
            goes(1, "async", false),
            settled(1, "async", "accepted"),
            goes(1, "sync", false),
            goes(1, "sync", true),
            settled(1, "sync", "accepted"),
            goes(2, "commit", false),
            settled(2, "commit", "unknown"),
            goes(2, "commit", false),
            goes(3, "async", false),
            settled(3, "async", "not_checked"),
            goes(3, "sync", false),
            // A transaction that is not of interest, and a line truncated by a kill.
            goes(77, "sync", false),
            format!("{{\"timestamp\":\"t\",\"mess{started}"),
            goes(1, "sync", false),
        ];
        let found = sent(&lines);
        assert_eq!((found.times[&hash(1)], found.times[&hash(2)], found.times.len()), (4, 2, 3));
        assert!(found.wrong.is_empty(), "{found:?}");
    }

    #[test]
    fn a_second_one_at_once_or_after_an_answer_is_wrong() {
        let at_once = [goes(1, "sync", false), goes(1, "sync", false)];
        assert_eq!(sent(&at_once).wrong.len(), 1);
        for (kind, outcome, again) in
            [("sync", "accepted", "sync"), ("commit", "accepted", "async"), ("async", "refused", "commit")]
        {
            let lines = [goes(1, kind, false), settled(1, kind, outcome), goes(1, again, false)];
            assert_eq!(sent(&lines).wrong.len(), 1, "{kind} {outcome} {again}");
        }
    }
}
