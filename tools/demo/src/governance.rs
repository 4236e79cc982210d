//! Network governance: parameters, limits and protocol upgrades; also checkpoints.

use std::collections::BTreeMap;

use proto_msgs::v2::ProtocolUpgradeProposalStatus as Status;

use crate::{
    block::Draft,
    catalogue::{CATALOGUE, UNSET, Upgrade},
    plan::Plan,
    random::Random,
};

/// Keys of the validators, who are also the nodes that stake is delegated to.
pub(crate) fn validators(plan: &Plan) -> Vec<String> {
    let mut random = Random::new(plan.seed, 0x766f_7465);
    (0..13).map(|_| random.id()).collect()
}

/// Writes the rows of this block: parameters, limits and votes on upgrades.
pub(crate) fn step(draft: &mut Draft<'_>) {
    set_parameters(draft);
    set_limits(draft);
    let gap = (draft.plan.blocks / 125).max(1);
    for template in &CATALOGUE.upgrades {
        let upgrade = of_history(draft.plan, template);
        vote(draft, &upgrade, gap);
    }
    // After the history the network votes on a new upgrade every 2,000 blocks.
    let from = draft.height / 2_000 * 2_000;
    let number = (from / 2_000).saturating_sub(draft.plan.blocks / 2_000);
    if number > 0 {
        let (tag, approvers) = (format!("v0.5.{number}"), (1..=2 + number % 7).collect());
        vote(draft, &Upgrade { tag, from, at: from + 1_501, approvers, approved: false }, 100);
    }
}

/// An upgrade of the history with heights.
fn of_history(plan: &Plan, template: &Upgrade) -> Upgrade {
    let (from, at) = (plan.height_at(template.from), plan.height_at(template.at));
    // The block of an approved upgrade ends a history segment (H7); a round height keeps the segments of the
    // demo equally long.
    let round = [1_000, 100].map(|step| at / step * step).into_iter().find(|round| *round > from);
    let at = round.filter(|_| template.approved).unwrap_or(at + 1);
    Upgrade { from: from.max(2), at, ..template.clone() }
}

/// Writes the vote or the end of an upgrade if this block has it. There are `gap` blocks between two votes.
fn vote(draft: &mut Draft<'_>, upgrade: &Upgrade, gap: u64) {
    let Some(into) = draft.height.checked_sub(upgrade.from) else { return };
    let last = upgrade.approvers.len() - 1;
    let (count, status) = if draft.height < upgrade.at && into.is_multiple_of(gap) {
        let Some(count) = upgrade.approvers.get((into / gap) as usize) else { return };
        (*count, if *count == 0 { Status::Rejected } else { Status::Pending })
    } else if draft.height == upgrade.at && into > 0 {
        let count = upgrade.approvers[((into - 1) / gap).min(last as u64) as usize];
        (count, if upgrade.approved { Status::Approved } else { Status::Rejected })
    } else {
        return;
    };
    // Nothing changes for an upgrade that was rejected before its block.
    if count == 0 && draft.height == upgrade.at {
        return;
    }
    draft.begin_transaction();
    let validators = validators(draft.plan);
    let voter = |at: u64| &*validators[((at * 5 + upgrade.from) % validators.len() as u64) as usize];
    let mut approvers: Vec<&str> = (0..count).map(voter).collect();
    approvers.sort_unstable();
    row! { draft, protocol_upgrade_proposals:
        upgrade_block_height: upgrade.at, network_release_tag: upgrade.tag,
        approvers: format!("{{{}}}", approvers.join(",")), status: status.as_str_name(),
    }
}

fn set_parameters(draft: &mut Draft<'_>) {
    let (plan, height) = (draft.plan, draft.height);
    let mut due: BTreeMap<&str, &str> = BTreeMap::new();
    if height == 1 {
        due.extend(CATALOGUE.parameters.iter().map(|(key, value)| (&**key, &**value)));
    }
    let changes = CATALOGUE.parameter_changes.iter();
    let changes = changes.filter(|change| plan.height_at(change.0).max(2) == height);
    due.extend(changes.map(|(_, key, value)| (&**key, &**value)));
    if height > plan.blocks && height.is_multiple_of(1_500) {
        due.insert("transfer.fee.factor", if height.is_multiple_of(3_000) { "0.0005" } else { "0.001" });
    }
    if !due.is_empty() {
        draft.begin_transaction();
    }
    for (key, value) in due {
        row! { draft, network_parameters: key: key, value: value }
    }
}

fn set_limits(draft: &mut Draft<'_>) {
    // The first two are of the first two blocks.
    let (plan, height) = (draft.plan, draft.height);
    let height_of = |at: usize, from| if at < 2 { at as u64 + 1 } else { plan.height_at(from).max(3) };
    let mut limits = CATALOGUE.limits.iter().enumerate();
    let Some((at, (_, flags))) = limits.rfind(|(at, (from, _))| height_of(*at, *from) == height) else {
        return;
    };
    draft.begin_transaction();
    let [market, asset, market_enabled, asset_enabled, genesis] = flags;
    row! { draft, network_limits:
        can_propose_market: market, can_propose_asset: asset, propose_market_enabled: market_enabled,
        propose_asset_enabled: asset_enabled, genesis_loaded: genesis,
        propose_market_enabled_from: if at == 2 { draft.time } else { UNSET },
        propose_asset_enabled_from: if at == 4 { draft.time.plus_seconds(7 * 86_400) } else { UNSET },
    }
}

/// Writes a checkpoint of the network's state after the previous block.
pub(crate) fn write_checkpoint(draft: &mut Draft<'_>, block_hash: &str) {
    draft.begin_transaction();
    // Real networks write the block's hash in upper case here and in lower case everywhere else.
    let (hash, block_hash) = (draft.random.id(), block_hash.to_uppercase());
    row! { draft, checkpoints: hash: hash, block_hash: block_hash, block_height: draft.height - 1 }
}
