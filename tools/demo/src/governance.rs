//! Network governance: parameters, limits and protocol upgrades; also checkpoints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    block::Draft,
    catalogue::{PARAMETER_CHANGES, PARAMETERS},
    moment::Moment,
    plan::Plan,
    random::Random,
    tables::Table,
};

/// The outcome of an upgrade proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Outcome {
    /// The upgrade block arrives with enough approvers.
    Approved,
    /// The upgrade block arrives with too few.
    TooFew,
    /// All approvers withdraw; some time later one approves again.
    Withdrawn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Status {
    Pending,
    Approved,
    Rejected,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Pending => "PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING",
            Status::Approved => "PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED",
            Status::Rejected => "PROTOCOL_UPGRADE_PROPOSAL_STATUS_REJECTED",
        }
    }
}

/// A proposal to run a new release from some height on.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Upgrade {
    tag: String,
    height: u64,
    proposed_at: u64,
    /// Blocks between two votes.
    gap: u64,
    most_approvers: u64,
    outcome: Outcome,
    approvers: Vec<String>,
    status: Status,
    withdrawing: bool,
    returned: bool,
}

/// The state of governance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Governance {
    validators: Vec<String>,
    upgrades: Vec<Upgrade>,
    live_upgrades: u64,
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

impl Governance {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut random = Random::new(plan.seed, 0x766f_7465);
        let upgrade = |&(tag, proposed, target, most, outcome): &(&str, u64, u64, u64, Outcome)| {
            let (proposed, target) = (plan.height_at(proposed), plan.height_at(target));
            // The block of an approved upgrade ends a history segment (H7); a round height keeps the segments
            // of the demo equally long.
            let round = [1_000, 100].map(|step| target / step * step).into_iter().find(|at| *at > proposed);
            let round = round.filter(|_| outcome == Outcome::Approved);
            let height = round.unwrap_or(target + 1);
            new_upgrade(tag.to_owned(), proposed, height, (plan.blocks / 125).max(1), most, outcome)
        };
        Governance {
            validators: (0..13).map(|_| random.id()).collect(),
            upgrades: UPGRADES.iter().map(upgrade).collect(),
            live_upgrades: 0,
        }
    }

    /// Keys of the validators, who are also the nodes that stake is delegated to.
    pub(crate) fn validators(&self) -> &[String] {
        &self.validators
    }

    /// Writes the rows of this block.
    pub(crate) fn step(&mut self, draft: &mut Draft, plan: &Plan) {
        set_parameters(draft, plan);
        set_limits(draft, plan);
        if draft.height > plan.blocks && draft.height.is_multiple_of(2_000) {
            self.live_upgrades += 1;
            let tag = format!("v0.5.{}", self.live_upgrades);
            let most = 2 + self.live_upgrades % 7;
            let (from, to) = (draft.height, draft.height + 1_501);
            self.upgrades.push(new_upgrade(tag, from, to, 100, most, Outcome::TooFew));
        }
        for upgrade in &mut self.upgrades {
            if upgrade.step(draft.height, &self.validators) {
                draft.begin_transaction();
                upgrade.write(draft);
            }
        }
        self.upgrades.retain(|upgrade| upgrade.height >= draft.height);
    }
}

fn new_upgrade(tag: String, from: u64, height: u64, gap: u64, most: u64, outcome: Outcome) -> Upgrade {
    Upgrade {
        tag,
        height,
        proposed_at: from.max(2),
        gap,
        most_approvers: most,
        outcome,
        approvers: Vec::new(),
        status: Status::Pending,
        withdrawing: false,
        returned: false,
    }
}

impl Upgrade {
    /// Makes the step that is due at this height; returns whether there was one.
    fn step(&mut self, height: u64, validators: &[String]) -> bool {
        if height < self.proposed_at || height > self.height {
            return false;
        }
        if height == self.height {
            let last = if self.outcome == Outcome::Approved { Status::Approved } else { Status::Rejected };
            let changes = self.status != last && !self.approvers.is_empty();
            self.status = last;
            return changes;
        }
        if !(height - self.proposed_at).is_multiple_of(self.gap) {
            return false;
        }
        if self.withdrawing {
            return self.withdraw();
        }
        if self.approvers.len() as u64 >= self.most_approvers {
            self.withdrawing = self.outcome == Outcome::Withdrawn && !self.returned;
            return false;
        }
        let voter = &validators[(self.approvers.len() * 5 + self.proposed_at as usize) % validators.len()];
        if let Err(at) = self.approvers.binary_search(voter) {
            self.approvers.insert(at, voter.clone());
        }
        self.status = Status::Pending;
        true
    }

    fn withdraw(&mut self) -> bool {
        if self.approvers.is_empty() {
            // Rejected, but before the upgrade height: one approver approves again.
            self.withdrawing = false;
            self.returned = true;
            self.most_approvers = 1;
            return false;
        }
        self.approvers.pop();
        if self.approvers.is_empty() {
            self.status = Status::Rejected;
        }
        true
    }

    fn write(&self, draft: &mut Draft) {
        let hash = draft.hash();
        let row = draft.rows.row(Table::ProtocolUpgradeProposals).number(self.height as i64).text(&self.tag);
        let row = row.text(&format!("{{{}}}", self.approvers.join(","))).text(self.status.name());
        row.text(&hash).time(draft.time).end();
    }
}

fn set_parameters(draft: &mut Draft, plan: &Plan) {
    let mut due: BTreeMap<&str, &str> = BTreeMap::new();
    if draft.height == 1 {
        due.extend(PARAMETERS.iter().copied());
    } else {
        let changes =
            PARAMETER_CHANGES.iter().filter(|(at, _, _)| plan.height_at(*at).max(2) == draft.height);
        due.extend(changes.map(|(_, key, value)| (*key, *value)));
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
        draft.rows.row(Table::NetworkParameters).text(key).text(value).text(&hash).time(draft.time).end();
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
    let mut row = draft.rows.row(Table::NetworkLimits).time(draft.time).text(&hash);
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
    let row = draft.rows.row(Table::Checkpoints).text(&hash).text(&block_hash.to_uppercase());
    row.number(draft.height as i64 - 1).text(&transaction).time(draft.time).number(position).end();
}
