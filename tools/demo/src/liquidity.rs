//! Liquidity provisions: commitments with a bond, the prices they promise to keep, and the fees they earn.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::block::Draft;
use crate::book::{Order, Status, usual_reference};
use crate::catalogue::{ODD_TEXTS, units};
use crate::json::jsonb;
use crate::market::{Fate, Market, State};
use crate::moment::Moment;
use crate::plan::Plan;
use crate::tables::Table;
use crate::world::{Key, Kind, World, reason};

/// Status of a provision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProvisionStatus {
    Active,
    Stopped,
    Cancelled,
    Rejected,
    Undeployed,
    Pending,
}

impl ProvisionStatus {
    fn name(self) -> &'static str {
        match self {
            ProvisionStatus::Active => "STATUS_ACTIVE",
            ProvisionStatus::Stopped => "STATUS_STOPPED",
            ProvisionStatus::Cancelled => "STATUS_CANCELLED",
            ProvisionStatus::Rejected => "STATUS_REJECTED",
            ProvisionStatus::Undeployed => "STATUS_UNDEPLOYED",
            ProvisionStatus::Pending => "STATUS_PENDING",
        }
    }

    fn is_final(self) -> bool {
        matches!(self, ProvisionStatus::Stopped | ProvisionStatus::Cancelled | ProvisionStatus::Rejected)
    }
}

/// A party's commitment to a market.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Provision {
    id: String,
    pub(crate) party: u16,
    pub(crate) commitment: i128,
    /// Fee in hundredths of a percent.
    fee: i64,
    pub(crate) status: ProvisionStatus,
    version: i64,
    reference: Option<String>,
    created: Moment,
    updated: Moment,
    #[serde(skip)]
    changed: Option<usize>,
}

/// Price levels that a provider keeps on each side.
const LEVELS: u8 = 2;

impl Market {
    fn bond_key(&self, party: u16) -> Key {
        Key { asset: self.asset(), party, market: self.number, kind: Kind::Bond }
    }

    /// Takes the steps of the market's providers that are due at this height.
    pub(crate) fn tend_provisions(&mut self, world: &mut World, draft: &mut Draft, plan: &Plan) {
        if !matches!(self.fate, Fate::Trades | Fate::Settles) {
            return;
        }
        let asset = self.asset();
        if self.in_auction() || self.state == State::Active {
            for party in [0, 1] {
                let usual = units(asset, 1_500_000 - 400_000 * i128::from(party));
                if self.provisions.iter().all(|provision| provision.party != party)
                    && world.balance(Key::general(asset, party)) > usual * 4
                {
                    self.commit(world, draft, party, usual);
                }
            }
        }
        if self.state != State::Active {
            return;
        }
        let due = |per_mille: u64| draft.height == plan.at(per_mille) + u64::from(self.number);
        let every_third = self.number.is_multiple_of(3);
        let (joins, leaves) = (due(300) && every_third, due(550) && every_third);
        let (overreaches, grows, shrinks) = (due(350) && self.number % 3 == 1, due(450), due(750));
        if joins {
            self.commit(world, draft, 2, units(asset, 250_000));
        }
        if overreaches {
            self.commit(world, draft, 3, units(asset, 900_000_000_000));
        }
        if leaves {
            self.cancel_provision(world, draft, 2);
        }
        if grows {
            self.amend_provision(world, draft, units(asset, 500_000));
        }
        if shrinks {
            self.amend_provision(world, draft, -units(asset, 300_000));
        }
        if (draft.height + u64::from(self.number) * 7).is_multiple_of(50) {
            self.distribute_fees(world, draft);
        }
    }

    /// Whether a party keeps prices in this market.
    pub(crate) fn is_provider(&self, party: u16) -> bool {
        self.provisions.iter().any(|provision| provision.party == party && !provision.status.is_final())
    }

    fn commit(&mut self, world: &mut World, draft: &mut Draft, party: u16, commitment: i128) {
        draft.begin_transaction();
        let general = Key::general(self.asset(), party);
        let status = if world.balance(general) < commitment {
            ProvisionStatus::Rejected
        } else if self.state == State::Active {
            ProvisionStatus::Active
        } else {
            ProvisionStatus::Pending
        };
        if status != ProvisionStatus::Rejected {
            world.transfer(draft, general, self.bond_key(party), commitment, reason::BOND_LOW);
        }
        let reference = match party {
            0 => Some(format!("lp-{}", draft.dice.hex(8))),
            1 => Some((*draft.dice.pick(ODD_TEXTS)).to_owned()),
            2 => Some(String::new()),
            _ => None,
        };
        self.provisions.push(Provision {
            id: draft.dice.id(),
            party,
            commitment,
            fee: 10 + 5 * i64::from(party),
            status,
            version: 1,
            reference,
            created: draft.time,
            updated: draft.time,
            changed: Some(draft.transaction()),
        });
    }

    fn amend_provision(&mut self, world: &mut World, draft: &mut Draft, more: i128) {
        draft.begin_transaction();
        let (bond, general) = (self.bond_key(0), Key::general(self.asset(), 0));
        let chosen = |p: &&mut Provision| p.party == 0 && p.status == ProvisionStatus::Active;
        let Some(provision) = self.provisions.iter_mut().find(chosen) else { return };
        let moved = if more > 0 {
            world.take(draft, general, bond, more, reason::BOND_LOW)
        } else {
            -world.take(draft, bond, general, -more, reason::BOND_HIGH)
        };
        provision.commitment += moved;
        provision.fee += 1;
        provision.version += 1;
        provision.updated = draft.time;
        provision.changed = Some(draft.transaction());
    }

    fn cancel_provision(&mut self, world: &mut World, draft: &mut Draft, party: u16) {
        draft.begin_transaction();
        self.end_provisions(world, draft, ProvisionStatus::Cancelled, |provision| provision.party == party);
        self.stop_orders(draft, Status::Cancelled, |order| {
            is_kept_by_provider(order) && order.party == party
        });
    }

    /// Ends every provision when the market has settled.
    pub(crate) fn stop_provisions(&mut self, world: &mut World, draft: &mut Draft) {
        self.distribute_fees(world, draft);
        self.end_provisions(world, draft, ProvisionStatus::Stopped, |_| true);
    }

    fn end_provisions(
        &mut self,
        world: &mut World,
        draft: &mut Draft,
        status: ProvisionStatus,
        chosen: impl Fn(&Provision) -> bool,
    ) {
        for at in 0..self.provisions.len() {
            let party = self.provisions[at].party;
            if self.provisions[at].status.is_final() || !chosen(&self.provisions[at]) {
                continue;
            }
            let bond = self.bond_key(party);
            let held = world.balance(bond);
            world.transfer(draft, bond, Key::general(self.asset(), party), held, reason::BOND_HIGH);
            self.set_status(draft, at, status);
        }
    }

    fn set_status(&mut self, draft: &Draft, at: usize, status: ProvisionStatus) {
        let provision = &mut self.provisions[at];
        provision.status = status;
        provision.updated = draft.time;
        provision.changed = Some(draft.transaction());
    }

    fn with_status(&self, status: ProvisionStatus) -> Vec<usize> {
        (0..self.provisions.len()).filter(|&at| self.provisions[at].status == status).collect()
    }

    /// Makes the provisions of the opening auction count.
    pub(crate) fn activate_provisions(&mut self, draft: &Draft) {
        for at in self.with_status(ProvisionStatus::Pending) {
            self.set_status(draft, at, ProvisionStatus::Active);
        }
    }

    /// Takes one provision out of the market for an auction, and a part of its bond.
    pub(crate) fn undeploy_provision(&mut self, world: &mut World, draft: &mut Draft) {
        let Some(&at) = self.with_status(ProvisionStatus::Active).last() else { return };
        let (party, commitment) = (self.provisions[at].party, self.provisions[at].commitment);
        let insurance = self.network_key(Kind::Insurance);
        world.take(draft, self.bond_key(party), insurance, commitment / 1_000, reason::BOND_SLASHING);
        self.set_status(draft, at, ProvisionStatus::Undeployed);
        self.stop_orders(draft, Status::Stopped, |order| is_kept_by_provider(order) && order.party == party);
    }

    /// Brings provisions back after an auction, with their bond made whole.
    pub(crate) fn redeploy_provisions(&mut self, world: &mut World, draft: &mut Draft) {
        for at in self.with_status(ProvisionStatus::Undeployed) {
            let (party, commitment) = (self.provisions[at].party, self.provisions[at].commitment);
            let bond = self.bond_key(party);
            let missing = commitment - world.balance(bond);
            world.take(draft, Key::general(self.asset(), party), bond, missing, reason::BOND_LOW);
            self.set_status(draft, at, ProvisionStatus::Active);
        }
    }

    /// Provisions that count now, with their share of the whole commitment.
    pub(crate) fn shares(&self) -> Vec<(u16, i128, f64)> {
        let active = || self.provisions.iter().filter(|p| p.status == ProvisionStatus::Active);
        let total: i128 = active().map(|provision| provision.commitment).sum();
        let share = |provision: &Provision| provision.commitment as f64 / (total.max(1)) as f64;
        active().map(|provision| (provision.party, provision.commitment, share(provision))).collect()
    }

    fn distribute_fees(&mut self, world: &mut World, draft: &mut Draft) {
        let pool = self.network_key(Kind::FeesLiquidity);
        let collected = world.balance(pool);
        let shares = self.shares();
        if collected == 0 || shares.is_empty() {
            return;
        }
        draft.begin_transaction();
        for (at, (party, _, share)) in shares.iter().enumerate() {
            let last = at + 1 == shares.len();
            let due = if last { collected } else { (collected as f64 * share) as i128 };
            let general = Key::general(self.asset(), *party);
            world.take(draft, pool, general, due, reason::LIQUIDITY_FEE_DISTRIBUTE);
        }
    }

    /// Keeps the providers' prices around the fair one.
    pub(crate) fn quote(&mut self, world: &mut World, draft: &mut Draft, pace: u64) {
        let fair = self.fair();
        let half = (fair * 6 / 10_000).max(2);
        let size = self.template().size;
        for at in 0..self.provisions.len() {
            let provision = &self.provisions[at];
            if !matches!(provision.status, ProvisionStatus::Active | ProvisionStatus::Pending) {
                continue;
            }
            let (party, lp) = (provision.party, provision.id.clone());
            let everything = draft.dice.chance(15 * pace / 1_000);
            for level in 0..LEVELS {
                for buy in [true, false] {
                    let offset = half * (1 + 2 * i64::from(level)) + half * i64::from(party);
                    let price = if buy { fair - offset } else { fair + offset }.max(1);
                    let tolerance = if everything { half / 3 } else { half * (3 + 3 * i64::from(level)) };
                    let wanted = size * (6 + 4 * i64::from(level));
                    let place = Place { party, buy, level, price, size: wanted, tolerance };
                    self.keep_quote(world, draft, &place, &lp);
                }
            }
        }
    }

    fn keep_quote(&mut self, world: &mut World, draft: &mut Draft, place: &Place, lp: &str) {
        let own = |order: &Order| {
            is_kept_by_provider(order)
                && order.party == place.party
                && order.buy == place.buy
                && order.level == place.level
        };
        let Some(at) = self.orders.iter().position(own) else {
            let mut order = Order::limit(world, draft, place.party, place.buy, place.price, place.size);
            order.lp = Some(lp.to_owned());
            order.level = place.level;
            self.submit(world, draft, order);
            return;
        };
        let present = &self.orders[at];
        let near = (present.price - place.price).abs() <= place.tolerance;
        if near && present.remaining * 3 >= place.size {
            return;
        }
        draft.begin_transaction();
        let mut order = self.orders.remove(at);
        order.priority = world.next_serial();
        order.price = place.price;
        (order.size, order.remaining) = (place.size, place.size);
        order.version += 1;
        order.updated = draft.time;
        if self.state == State::Active {
            self.execute(world, draft, &mut order);
        }
        self.keep(draft, order);
    }

    /// Writes one row for every provision that the block changed.
    pub(crate) fn flush_provisions(&mut self, world: &World, draft: &mut Draft) {
        for provision in &mut self.provisions {
            let Some(transaction) = provision.changed.take() else { continue };
            let hash = draft.hash_of(transaction);
            let row = draft.rows.row(Table::LiquidityProvisions).text(&provision.id);
            let row = row.text(world.party_id(provision.party)).time(provision.created);
            let row = row.time(provision.updated).text(world.market_id(self.number));
            let row = row.number(provision.commitment).text(&format!("0.{:04}000000000000", provision.fee));
            let (sells, buys) = (shape(&provision.id, 3), shape(&provision.id, 2));
            let row = row.text(&jsonb(&sells)).text(&jsonb(&buys)).number(provision.version);
            let row = row.text(provision.status.name());
            let row = match &provision.reference {
                Some(reference) => row.text(reference),
                None => row.text(&usual_reference(&provision.id)),
            };
            row.text(&hash).time(draft.time).end();
        }
        self.provisions.retain(|provision| provision.party < 2 || !provision.status.is_final());
    }
}

/// One price that a provider wants to keep.
struct Place {
    party: u16,
    buy: bool,
    level: u8,
    price: i64,
    size: i64,
    tolerance: i64,
}

pub(crate) fn is_kept_by_provider(order: &Order) -> bool {
    order.lp.as_deref().is_some_and(|lp| !lp.is_empty())
}

/// The promised shape of one side of the book.
fn shape(id: &str, reference: i64) -> Value {
    let orders = (0..i64::from(LEVELS)).map(|level| {
        let liquidity_order = json!({
            "reference": reference,
            "proportion": 10 - 3 * level,
            "offset": (1 + 2 * level).to_string(),
        });
        json!({"order_id": format!("{}{reference}{level}", &id[..62]), "liquidity_order": liquidity_order})
    });
    orders.collect()
}
