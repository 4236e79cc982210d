//! Network governance: parameters, limits and protocol upgrades; also checkpoints.

use std::collections::BTreeMap;

use proto_msgs::v2::ProtocolUpgradeProposalStatus as Status;

use crate::{block::Draft, catalogue::CATALOGUE, moment::Moment, plan::Plan, random::Random};

/// The outcome of an upgrade proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The upgrade block arrives with enough approvers.
    Approved,
    /// The upgrade block arrives with too few.
    TooFew,
    /// All approvers withdraw; some time later one approves again.
    Withdrawn,
}

/// A proposal to run a new release from some height on.
struct Upgrade {
    tag: String,
    height: u64,
    proposed_at: u64,
    /// Blocks between two votes.
    gap: u64,
    most_approvers: u64,
    outcome: Outcome,
}

/// Upgrades of the history: tag, time of the proposal and of the upgrade block (thousandths of the history),
/// largest number of approvers.
const UPGRADES: &[(&str, u64, u64, u64, Outcome)] = &[
    ("v0.1.1", 40, 110, 3, Outcome::TooFew),
    ("v0.1.2", 90, 190, 5, Outcome::TooFew),
    ("v0.1.2-hotfix.1", 95, 190, 1, Outcome::TooFew),
    ("v0.1.3", 180, 290, 4, Outcome::Withdrawn),
    ("v0.2.0-rc.1", 250, 520, 2, Outcome::Withdrawn),
    ("v0.2.0", 380, 600, 10, Outcome::Approved),
    ("v0.2.1", 640, 700, 2, Outcome::TooFew),
    ("v0.2.2", 690, 810, 6, Outcome::Withdrawn),
    ("v0.2.3", 780, 880, 3, Outcome::TooFew),
    ("v0.3.0", 800, 1_100, 8, Outcome::TooFew),
    ("v0.3.0-rc.2", 830, 1_100, 2, Outcome::TooFew),
    ("v0.4.0", 960, 1_600, 4, Outcome::TooFew),
];

/// Keys of the validators, who are also the nodes that stake is delegated to.
pub(crate) fn validators(plan: &Plan) -> Vec<String> {
    let mut random = Random::new(plan.seed, 0x766f_7465);
    (0..13).map(|_| random.id()).collect()
}

/// Writes the rows of this block: parameters, limits and votes on upgrades.
pub(crate) fn step(draft: &mut Draft, plan: &Plan) {
    set_parameters(draft, plan);
    set_limits(draft, plan);
    for upgrade in UPGRADES.iter().map(|row| Upgrade::of_history(plan, row)).chain(live_upgrade(draft, plan))
    {
        if let Some((approvers, status)) = upgrade.step(draft.height) {
            upgrade.write(draft, plan, approvers, status);
        }
    }
}

/// The upgrade that the network votes on after its history: a new one every 2,000 blocks.
fn live_upgrade(draft: &Draft, plan: &Plan) -> Option<Upgrade> {
    let number = (draft.height / 2_000).checked_sub(plan.blocks / 2_000).filter(|number| *number > 0)?;
    let proposed_at = draft.height / 2_000 * 2_000;
    Some(Upgrade {
        tag: format!("v0.5.{number}"),
        height: proposed_at + 1_501,
        proposed_at,
        gap: 100,
        most_approvers: 2 + number % 7,
        outcome: Outcome::TooFew,
    })
}

impl Upgrade {
    fn of_history(plan: &Plan, row: &(&str, u64, u64, u64, Outcome)) -> Self {
        let (tag, proposed, target, most_approvers, outcome) = *row;
        let (proposed, target) = (plan.height_at(proposed), plan.height_at(target));
        // The block of an approved upgrade ends a history segment (H7); a round height keeps the segments
        // of the demo equally long.
        let round = [1_000, 100].map(|step| target / step * step).into_iter().find(|at| *at > proposed);
        let round = round.filter(|_| outcome == Outcome::Approved);
        Upgrade {
            tag: tag.to_owned(),
            height: round.unwrap_or(target + 1),
            proposed_at: proposed.max(2),
            gap: (plan.blocks / 125).max(1),
            most_approvers,
            outcome,
        }
    }

    /// Number of approvers and status after a number of votes.
    fn after(&self, votes: u64) -> (u64, Status) {
        let most = self.most_approvers;
        let approvers = match self.outcome {
            Outcome::Withdrawn if votes > 2 * most => 1,
            Outcome::Withdrawn if votes > most => 2 * most - votes,
            _ => votes.min(most),
        };
        (approvers, if approvers == 0 { Status::Rejected } else { Status::Pending })
    }

    /// Number of approvers and status that change in this block, if they do.
    fn step(&self, height: u64) -> Option<(u64, Status)> {
        let into = height.checked_sub(self.proposed_at).filter(|_| height <= self.height)?;
        let before = self.after(into.div_ceil(self.gap));
        let now = if height < self.height {
            self.after(into / self.gap + 1)
        } else if before.1 == Status::Rejected {
            before
        } else {
            let is_approved = self.outcome == Outcome::Approved;
            (before.0, if is_approved { Status::Approved } else { Status::Rejected })
        };
        (now != before).then_some(now)
    }

    fn write(&self, draft: &mut Draft, plan: &Plan, approvers: u64, status: Status) {
        draft.begin_transaction();
        let (hash, validators) = (draft.hash(), validators(plan));
        let voter = |at: u64| &*validators[((at * 5 + self.proposed_at) % validators.len() as u64) as usize];
        let mut approvers: Vec<&str> = (0..approvers).map(voter).collect();
        approvers.sort_unstable();
        let row = draft.rows.row("protocol_upgrade_proposals").number(self.height as i64).text(&self.tag);
        let row = row.text(&format!("{{{}}}", approvers.join(","))).text(status.as_str_name());
        row.text(&hash).time(draft.time).end();
    }
}

fn set_parameters(draft: &mut Draft, plan: &Plan) {
    let mut due: BTreeMap<&str, &str> = BTreeMap::new();
    if draft.height == 1 {
        due.extend(CATALOGUE.parameters.iter().map(|(key, value)| (&**key, &**value)));
    } else {
        for (at, key, value) in &CATALOGUE.parameter_changes {
            if plan.height_at(*at).max(2) == draft.height {
                due.insert(key, value);
            }
        }
    }
    if draft.height > plan.blocks && draft.height.is_multiple_of(1_500) {
        let value = if draft.height.is_multiple_of(3_000) { "0.0005" } else { "0.001" };
        due.insert("transfer.fee.factor", value);
    }
    if due.is_empty() {
        return;
    }
    draft.begin_transaction();
    let hash = draft.hash();
    for (key, value) in due {
        draft.rows.row("network_parameters").text(key).text(value).text(&hash).time(draft.time).end();
    }
}

/// Network limits from a thousandth of the history on: whether markets and assets may be proposed, whether
/// each kind is enabled, and whether genesis is loaded.
const LIMITS: &[(u64, [bool; 5])] = &[
    (0, [false, false, false, false, false]),
    (1, [false, false, false, false, true]),
    (2, [true, false, true, false, true]),
    (35, [true, true, true, true, true]),
    (500, [true, false, true, true, true]),
    (640, [true, true, true, true, true]),
];

fn set_limits(draft: &mut Draft, plan: &Plan) {
    let height_of =
        |(at, per_mille): (usize, u64)| if at < 2 { at as u64 + 1 } else { plan.height_at(per_mille).max(3) };
    let due = LIMITS.iter().enumerate().rev().find(|(at, (from, _))| height_of((*at, *from)) == draft.height);
    let Some((at, (_, flags))) = due else { return };
    draft.begin_transaction();
    let hash = draft.hash();
    let asset_from = if at == 4 { draft.time.plus_seconds(7 * 86_400) } else { Moment::UNSET };
    let mut row = draft.rows.row("network_limits").time(draft.time).text(&hash);
    for flag in flags {
        row = row.flag(*flag);
    }
    let market_from = if at == 2 { draft.time } else { Moment::UNSET };
    row.time(market_from).time(asset_from).end();
}

/// Writes a checkpoint of the network's state after the previous block.
pub(crate) fn write_checkpoint(draft: &mut Draft, block_hash: &str) {
    draft.begin_transaction();
    let (position, hash, transaction) = (draft.next_position(), draft.random.id(), draft.hash());
    // Real networks write the block's hash in upper case here and in lower case everywhere else.
    let row = draft.rows.row("checkpoints").text(&hash).text(&block_hash.to_uppercase());
    row.number(draft.height as i64 - 1).text(&transaction).time(draft.time).number(position).end();
}
