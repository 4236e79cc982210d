//! Deposits, withdrawals, and transfers between parties and into reward pools.

use mesh_store::TimeUs;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    block::Draft,
    catalogue::{ASSETS, CATALOGUE, UNSET, VOTE, units},
    world::{Key, Kind},
};

/// The largest unsigned 256-bit number.
const LARGEST: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639935";

/// Money on its way into the network, or out of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Movement {
    id: String,
    party: u16,
    asset: u8,
    amount: i128,
    created: TimeUs,
    /// Height at which it is completed.
    due: u64,
    /// The reference and the receiver of a withdrawal.
    out: Option<(String, Value)>,
    /// Whether the party asks for more than it has.
    refused: bool,
}

impl Movement {
    /// Writes its present state. A movement that is final has a hash on the other chain and a time.
    fn write(&self, draft: &mut Draft<'_>, status: &str) {
        let is_final = status == "STATUS_FINALIZED";
        let foreign = if is_final { format!("0x{}", draft.random.id()) } else { String::new() };
        let moved = if is_final { draft.time } else { UNSET };
        let (party, asset) = (draft.world.party_id(self.party), draft.world.asset_id(self.asset));
        match &self.out {
            None => row! { draft, deposits:
                id: self.id, status: status, party_id: party, asset: asset, amount: self.amount,
                foreign_tx_hash: foreign, credited_timestamp: moved, created_timestamp: self.created,
            },
            Some((reference, ext)) => row! { draft, withdrawals:
                id: self.id, party_id: party, amount: self.amount, asset: asset, status: status,
                ref: reference, foreign_tx_hash: foreign, created_timestamp: self.created,
                withdrawn_timestamp: moved, ext: ext,
            },
        }
    }

    /// Completes it, or ends it otherwise. All first deposits complete; later ones may be cancelled or stay
    /// open.
    fn finish(&self, draft: &mut Draft<'_>) {
        draft.begin_transaction();
        let external = Key::global(self.asset, Kind::External);
        let general = Key::general(self.asset, self.party);
        if self.out.is_some() {
            if self.refused || draft.world.balance(general) < self.amount {
                return self.write(draft, "STATUS_REJECTED");
            }
            draft.transfer(general, external, self.amount, "WITHDRAW");
            return self.write(draft, "STATUS_FINALIZED");
        }
        match if self.due < 60 { 0 } else { draft.random.below(100) } {
            0..85 => {
                draft.transfer(external, general, self.amount, "DEPOSIT");
                self.write(draft, "STATUS_FINALIZED");
            }
            85..94 => self.write(draft, "STATUS_CANCELLED"),
            _ => {}
        }
    }
}

/// Deposits, withdrawals and transfers that are not complete yet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Funding {
    movements: Vec<Movement>,
    /// Transfers by receiver, amount, and the height at which they complete.
    transfers: Vec<(Key, i128, u64)>,
}

impl Funding {
    pub(crate) fn step(&mut self, draft: &mut Draft<'_>) {
        if draft.height == 1 {
            restore(draft);
            list_assets(draft);
        }
        self.finish(draft);
        self.first_deposits(draft);
        let (rate, traders) = (35 * draft.pace / 1_000 + 1, i64::from(draft.world.traders));
        let party = draft.random.between(2, traders - 1) as u16;
        let asset = draft.random.below(3) as u8;
        if draft.random.chance(rate) {
            let amount = units(asset, 100) * i128::from(draft.random.between(1, 500));
            self.open_deposit(draft, party, asset, amount);
        }
        if draft.random.chance(rate) {
            self.open_withdrawal(draft, party, asset);
        }
        if draft.random.chance(rate) {
            let other = draft.random.between(0, traders - 1) as u16;
            let amount = draft.world.balance(Key::general(asset, party)) / 50;
            self.send(draft, party, Key::general(asset, other), amount);
        }
        if draft.height == draft.plan.height_at(400) {
            // A deposit of the largest 256-bit amount, which is cancelled at once.
            draft.begin_transaction();
            let id = draft.random.id();
            row! { draft, deposits:
                id: id, status: "STATUS_CANCELLED", party_id: draft.world.party_id(3),
                asset: draft.world.asset_id(0), amount: LARGEST, foreign_tx_hash: "",
                credited_timestamp: UNSET, created_timestamp: draft.time,
            }
        }
    }

    /// Deposits of every party in the first blocks; those of providers are large.
    fn first_deposits(&mut self, draft: &mut Draft<'_>) {
        let height = draft.height;
        let parties = (0..draft.world.traders).filter(|party| height == 2 + u64::from(*party) / 8);
        for (party, asset) in parties.flat_map(|party| (0..VOTE).map(move |asset| (party, asset))) {
            let whole = match party {
                0 | 1 => 250_000_000,
                2 => 4_000_000,
                _ => draft.random.between(20_000, 900_000),
            };
            let crumbs = i128::from(draft.random.between(0, 99_999));
            self.open_deposit(draft, party, asset, units(asset, i128::from(whole)) + crumbs);
        }
    }

    fn open_deposit(&mut self, draft: &mut Draft<'_>, party: u16, asset: u8, amount: i128) {
        draft.begin_transaction();
        let (due, created) = (draft.height + draft.random.between(2, 6) as u64, draft.time);
        let id = draft.random.id();
        let deposit = Movement { id, party, asset, amount, created, due, ..Movement::default() };
        deposit.write(draft, "STATUS_OPEN");
        self.movements.push(deposit);
    }

    fn open_withdrawal(&mut self, draft: &mut Draft<'_>, party: u16, asset: u8) {
        draft.begin_transaction();
        let available = draft.world.balance(Key::general(asset, party));
        let refused = draft.random.chance(150);
        let part = draft.random.between(1, 120);
        let amount = if refused { available * 3 + 1 } else { available * i128::from(part) / 1_000 }.max(1);
        let receiver = format!("0x{}", draft.random.hex(40));
        let plain = draft.random.chance(60);
        let ext = if plain { json!({}) } else { json!({"erc20": {"receiverAddress": receiver}}) };
        let reference = match draft.random.below(10) {
            0 => draft.random.pick(&CATALOGUE.odd_texts).clone(),
            1 => String::new(),
            _ => draft.random.below(4_000_000_000).to_string(),
        };
        let id = draft.random.id();
        let (due, created) = (draft.height + draft.random.between(3, 60) as u64, draft.time);
        let withdrawal =
            Movement { id, party, asset, amount, created, due, out: Some((reference, ext)), refused };
        withdrawal.write(draft, "STATUS_OPEN");
        // One in eight is never completed.
        if !draft.random.chance(125) {
            self.movements.push(withdrawal);
        }
    }

    /// Begins a transfer that completes some blocks later.
    pub(crate) fn send(&mut self, draft: &mut Draft<'_>, from: u16, to: Key, amount: i128) {
        let general = Key::general(to.asset, from);
        if amount <= 0 || amount > draft.world.balance(general) || general == to {
            return;
        }
        draft.begin_transaction();
        draft.transfer(general, Key::global(to.asset, Kind::PendingTransfers), amount, "TRANSFER_FUNDS_SEND");
        let due = draft.height + draft.random.between(1, 4) as u64;
        self.transfers.push((to, amount, due));
    }

    /// Completes everything that is due in this block.
    fn finish(&mut self, draft: &mut Draft<'_>) {
        let height = draft.height;
        let mut due: Vec<_> = self.movements.extract_if(.., |movement| movement.due <= height).collect();
        due.sort_by_key(|movement| movement.out.is_some());
        due.iter().for_each(|movement| movement.finish(draft));
        for (to, amount, _) in self.transfers.extract_if(.., |transfer| transfer.2 <= height) {
            draft.begin_transaction();
            let pending = Key::global(to.asset, Kind::PendingTransfers);
            draft.transfer(pending, to, amount, "TRANSFER_FUNDS_DISTRIBUTE");
        }
    }
}

/// Writes the definition of every asset, by the checkpoint's transaction. Those that come from another chain
/// have a contract there.
fn list_assets(draft: &mut Draft<'_>) {
    for (asset, number) in ASSETS.iter().zip(0..) {
        let id = draft.world.asset_id(number);
        let contract = if number == VOTE { String::new() } else { format!("0x{}", &id[..40]) };
        row! { draft, assets:
            id: id, name: asset.name, symbol: asset.symbol, decimals: asset.decimals, quantum: 1_u32,
            source: if number == VOTE { "10000" } else { "" }, erc20_contract: contract,
            lifetime_limit: 0_u32, withdraw_threshold: 0_u32, status: "STATUS_ENABLED",
        }
    }
}

/// Restores the stake of an earlier network's checkpoint in the first block.
fn restore(draft: &mut Draft<'_>) {
    draft.begin_transaction();
    for party in 0..draft.world.traders {
        let whole = if party < 2 { 180_000_000 } else { draft.random.between(500, 90_000) };
        let (external, general) = (Key::global(VOTE, Kind::External), Key::general(VOTE, party));
        draft.transfer(external, general, units(VOTE, i128::from(whole)), "CHECKPOINT_BALANCE_RESTORE");
    }
}
