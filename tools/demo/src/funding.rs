//! Deposits, withdrawals, and transfers between parties and into reward pools.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    block::Draft,
    catalogue::{ASSETS, CATALOGUE, VOTE, units},
    json::jsonb,
    moment::Moment,
    plan::Plan,
    world::{Key, Kind, World},
};

/// The largest unsigned 256-bit number.
const LARGEST: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639935";

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Deposit {
    id: String,
    party: u16,
    asset: u8,
    amount: i128,
    created: Moment,
    due: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Withdrawal {
    id: String,
    party: u16,
    asset: u8,
    amount: i128,
    reference: String,
    ext: String,
    created: Moment,
    due: u64,
    refused: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Transfer {
    to: Key,
    amount: i128,
    due: u64,
}

/// Deposits, withdrawals and transfers that are not complete yet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Funding {
    deposits: Vec<Deposit>,
    withdrawals: Vec<Withdrawal>,
    transfers: Vec<Transfer>,
}

impl Funding {
    /// Makes the rows of this block. `pace` is the block's duration in thousandths of the mean.
    pub(crate) fn step(&mut self, world: &mut World, draft: &mut Draft, plan: &Plan, pace: u64) {
        if draft.height == 1 {
            restore(world, draft);
            list_assets(world, draft);
        }
        self.finish(world, draft);
        self.first_deposits(world, draft);
        let rate = 35 * pace / 1_000 + 1;
        let party = draft.random.between(2, i64::from(world.party_count()) - 1) as u16;
        let asset = draft.random.below(3) as u8;
        if draft.random.chance(rate) {
            let amount = units(asset, 100) * i128::from(draft.random.between(1, 500));
            self.open_deposit(world, draft, party, asset, amount);
        }
        if draft.random.chance(rate) {
            self.open_withdrawal(world, draft, party, asset);
        }
        if draft.random.chance(rate) {
            let other = draft.random.between(0, i64::from(world.party_count()) - 1) as u16;
            let amount = world.balance(Key::general(asset, party)) / 50;
            self.send(world, draft, party, Key::general(asset, other), amount);
        }
        if draft.height == plan.height_at(400) {
            Self::try_the_largest(world, draft);
        }
    }

    /// Deposits of every party in the first blocks: large ones of providers, very small ones of some others.
    fn first_deposits(&mut self, world: &mut World, draft: &mut Draft) {
        let parties = world.party_count();
        for party in 0..parties {
            if draft.height != 2 + u64::from(party) / 8 {
                continue;
            }
            for asset in 0..3 {
                let whole = match party {
                    0 | 1 => 250_000_000,
                    2 => 4_000_000,
                    _ if party >= parties - parties / 8 => draft.random.between(900, 6_000),
                    _ => draft.random.between(20_000, 900_000),
                };
                let crumbs = i128::from(draft.random.between(0, 99_999));
                self.open_deposit(world, draft, party, asset, units(asset, i128::from(whole)) + crumbs);
            }
        }
    }

    fn open_deposit(&mut self, world: &World, draft: &mut Draft, party: u16, asset: u8, amount: i128) {
        draft.begin_transaction();
        let due = draft.height + draft.random.between(2, 6) as u64;
        let deposit = Deposit { id: draft.random.id(), party, asset, amount, created: draft.time, due };
        deposit.write(world, draft, "STATUS_OPEN");
        self.deposits.push(deposit);
    }

    /// A deposit of the largest 256-bit amount, which is cancelled at once.
    fn try_the_largest(world: &World, draft: &mut Draft) {
        draft.begin_transaction();
        let (id, hash) = (draft.random.id(), draft.hash());
        let row = draft.rows.row("deposits").text(&id).text("STATUS_CANCELLED").text(world.party_id(3));
        let row = row.text(world.asset_id(0)).text(LARGEST).text("").time(Moment::UNSET);
        row.time(draft.time).text(&hash).time(draft.time).end();
    }

    fn open_withdrawal(&mut self, world: &World, draft: &mut Draft, party: u16, asset: u8) {
        draft.begin_transaction();
        let available = world.balance(Key::general(asset, party));
        let refused = draft.random.chance(150);
        let part = draft.random.between(1, 120);
        let amount = if refused { available * 3 + 1 } else { available * i128::from(part) / 1_000 };
        let receiver = format!("0x{}", draft.random.hex(40));
        let plain = draft.random.chance(60);
        let ext = if plain { json!({}) } else { json!({"erc20": {"receiverAddress": receiver}}) };
        let reference = match draft.random.below(10) {
            0 => draft.random.pick(&CATALOGUE.odd_texts).clone(),
            1 => String::new(),
            _ => draft.random.below(4_000_000_000).to_string(),
        };
        let withdrawal = Withdrawal {
            id: draft.random.id(),
            party,
            asset,
            amount: amount.max(1),
            reference,
            ext: jsonb(&ext),
            created: draft.time,
            due: draft.height + draft.random.between(3, 60) as u64,
            refused,
        };
        withdrawal.write(world, draft, "STATUS_OPEN");
        // One in eight is never completed.
        if !draft.random.chance(125) {
            self.withdrawals.push(withdrawal);
        }
    }

    /// Begins a transfer that completes some blocks later.
    pub(crate) fn send(&mut self, world: &mut World, draft: &mut Draft, from: u16, to: Key, amount: i128) {
        let general = Key::general(to.asset, from);
        if amount <= 0 || amount > world.balance(general) || general == to {
            return;
        }
        draft.begin_transaction();
        let pending = Key::global(to.asset, Kind::PendingTransfers);
        world.transfer(draft, general, pending, amount, "TRANSFER_FUNDS_SEND");
        let due = draft.height + draft.random.between(1, 4) as u64;
        self.transfers.push(Transfer { to, amount, due });
    }

    /// Completes everything that is due in this block.
    fn finish(&mut self, world: &mut World, draft: &mut Draft) {
        let height = draft.height;
        for deposit in take_due(&mut self.deposits, |deposit| deposit.due <= height) {
            draft.begin_transaction();
            // All first deposits complete; later ones may be cancelled or stay open.
            let luck = if deposit.due < 60 { 0 } else { draft.random.below(100) };
            match luck {
                0..85 => {
                    let external = Key::global(deposit.asset, Kind::External);
                    let general = Key::general(deposit.asset, deposit.party);
                    world.transfer(draft, external, general, deposit.amount, "DEPOSIT");
                    deposit.write(world, draft, "STATUS_FINALIZED");
                }
                85..94 => deposit.write(world, draft, "STATUS_CANCELLED"),
                _ => {}
            }
        }
        for withdrawal in take_due(&mut self.withdrawals, |withdrawal| withdrawal.due <= height) {
            draft.begin_transaction();
            let general = Key::general(withdrawal.asset, withdrawal.party);
            if withdrawal.refused || world.balance(general) < withdrawal.amount {
                withdrawal.write(world, draft, "STATUS_REJECTED");
                continue;
            }
            let external = Key::global(withdrawal.asset, Kind::External);
            world.transfer(draft, general, external, withdrawal.amount, "WITHDRAW");
            withdrawal.write(world, draft, "STATUS_FINALIZED");
        }
        for transfer in take_due(&mut self.transfers, |transfer| transfer.due <= height) {
            draft.begin_transaction();
            let pending = Key::global(transfer.to.asset, Kind::PendingTransfers);
            world.transfer(draft, pending, transfer.to, transfer.amount, "TRANSFER_FUNDS_DISTRIBUTE");
        }
    }
}

fn take_due<T>(list: &mut Vec<T>, due: impl Fn(&T) -> bool) -> Vec<T> {
    let (due_now, later) = std::mem::take(list).into_iter().partition(|item| due(item));
    *list = later;
    due_now
}

/// Writes the definition of every asset, by the checkpoint's transaction. Those that come from another chain
/// have a contract there.
fn list_assets(world: &World, draft: &mut Draft) {
    let hash = draft.hash();
    for (asset, number) in ASSETS.iter().zip(0..) {
        let row = draft.rows.row("assets").text(world.asset_id(number)).text(asset.name).text(asset.symbol);
        let row = row.number(asset.decimals).number(1);
        let row = match number {
            VOTE => row.text("10000").text(""),
            _ => row.text("").text(&format!("0x{}", &world.asset_id(number)[..40])),
        };
        row.number(0).number(0).text("STATUS_ENABLED").text(&hash).time(draft.time).end();
    }
}

/// Restores the stake of an earlier network's checkpoint in the first block.
fn restore(world: &mut World, draft: &mut Draft) {
    draft.begin_transaction();
    for party in 0..world.party_count() {
        let whole = if party < 2 { 180_000_000 } else { draft.random.between(500, 90_000) };
        let (external, general) = (Key::global(VOTE, Kind::External), Key::general(VOTE, party));
        let amount = units(VOTE, i128::from(whole));
        world.transfer(draft, external, general, amount, "CHECKPOINT_BALANCE_RESTORE");
    }
}

/// The hash on the other chain and the time of what is final, both unset otherwise.
fn finality(draft: &mut Draft, status: &str) -> (String, Moment) {
    match status {
        "STATUS_FINALIZED" => (format!("0x{}", draft.random.id()), draft.time),
        _ => (String::new(), Moment::UNSET),
    }
}

impl Deposit {
    fn write(&self, world: &World, draft: &mut Draft, status: &str) {
        let ((foreign, credited), hash) = (finality(draft, status), draft.hash());
        let row = draft.rows.row("deposits").text(&self.id).text(status);
        let row = row.text(world.party_id(self.party)).text(world.asset_id(self.asset));
        let row = row.number(self.amount).text(&foreign).time(credited).time(self.created);
        row.text(&hash).time(draft.time).end();
    }
}

impl Withdrawal {
    fn write(&self, world: &World, draft: &mut Draft, status: &str) {
        let ((foreign, withdrawn), hash) = (finality(draft, status), draft.hash());
        let row = draft.rows.row("withdrawals").text(&self.id).text(world.party_id(self.party));
        let row = row.number(self.amount).text(world.asset_id(self.asset)).text(status);
        let row = row.text(&self.reference).text(&foreign).time(self.created).time(withdrawn);
        row.text(&self.ext).text(&hash).time(draft.time).end();
    }
}
