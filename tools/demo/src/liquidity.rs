//! Liquidity providers of a market: their commitments and bonds, their orders around the price, and the fees that
//! they earn.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    block::Draft,
    catalogue::{CATALOGUE, units},
    market::{Ending, Market, State},
    moment::Moment,
    order::{Order, Status, default_reference},
    rows::label,
    world::Kind,
};

/// The parties that provide liquidity in all markets.
pub(crate) const PROVIDERS: [u16; 2] = [0, 1];

/// Price levels that a provider offers on each side.
const LEVELS: i64 = 2;

/// What happens to the provisions of every market, or of every third one from this number on: the thousandth of the
/// history, the party, and its commitment in whole units from then on.
const SCRIPT: [(Option<u16>, u64, u16, i128); 5] = [
    (None, 450, 0, 2_000_000),
    (None, 750, 0, 1_700_000),
    (Some(0), 300, 2, 250_000),
    (Some(0), 550, 2, 0),
    // The party cannot pay the bond: the provision is rejected.
    (Some(1), 350, 3, 900_000_000_000),
];

/// Status of a provision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProvisionStatus {
    Pending,
    Active,
    Stopped,
    Cancelled,
    Rejected,
    Undeployed,
}

/// A party's commitment to a market.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Provision {
    id: String,
    party: u16,
    commitment: i128,
    status: ProvisionStatus,
    version: i64,
    reference: String,
    created: Moment,
    updated: Moment,
    /// Hash of the transaction of the present block that changed the provision.
    #[serde(skip)]
    changed: Option<String>,
}

impl Provision {
    /// Whether the party still offers prices for it, or will again.
    fn is_alive(&self) -> bool {
        use ProvisionStatus::{Active, Pending, Undeployed};
        matches!(self.status, Active | Pending | Undeployed)
    }
}

impl Market {
    /// Makes the steps of the market's providers that are due at this height.
    pub(crate) fn step_provisions(&mut self, draft: &mut Draft<'_>) {
        let number = u64::from(self.number);
        for party in PROVIDERS {
            let usual = units(self.asset(), 1_500_000 - 400_000 * i128::from(party));
            let is_new = self.provisions.iter().all(|provision| provision.party != party);
            let trades = matches!(self.ending, Ending::None | Ending::Settled);
            if is_new && trades && draft.world.balance(self.general_key(party)) > usual * 4 {
                self.commit(draft, party, usual);
            }
        }
        if self.state != State::Active {
            return;
        }
        for (third, per_mille, party, whole) in SCRIPT {
            let is_meant = third.is_none_or(|third| self.number % 3 == third);
            if !is_meant || draft.height != draft.plan.height_at(per_mille) + number {
                continue;
            }
            if whole > 0 {
                self.commit(draft, party, units(self.asset(), whole));
            } else {
                draft.begin_transaction();
                self.change_provisions(draft, ProvisionStatus::Cancelled, |other| other == party);
            }
        }
        if (draft.height + number * 7).is_multiple_of(50) {
            draft.begin_transaction();
            self.distribute_fees(draft);
        }
    }

    /// Commits a party to an amount, of which it pays or gets back what its bond lacks or exceeds: a new provision,
    /// or the next version of its provision.
    fn commit(&mut self, draft: &mut Draft<'_>, party: u16, commitment: i128) {
        draft.begin_transaction();
        let (general, bond) = (self.general_key(party), self.party_key(party, Kind::Bond));
        let held = draft.world.balance(bond);
        let status = match self.state {
            _ if draft.world.balance(general) + held < commitment => ProvisionStatus::Rejected,
            State::Active => ProvisionStatus::Active,
            _ => ProvisionStatus::Pending,
        };
        if status != ProvisionStatus::Rejected {
            draft.transfer(general, bond, commitment - held, "BOND_LOW");
            draft.transfer(bond, general, held - commitment, "BOND_HIGH");
        }
        let (updated, changed) = (draft.time, Some(draft.transaction.clone()));
        if let Some(own) = self.provisions.iter_mut().find(|own| own.party == party && own.is_alive()) {
            let version = own.version + 1;
            *own = Provision { commitment, status, version, updated, changed, ..own.clone() };
            return;
        }
        let id = draft.random.id();
        let reference = match party {
            0 => format!("lp-{}", draft.random.hex(8)),
            1 => draft.random.pick(&CATALOGUE.odd_texts).clone(),
            2 => String::new(),
            _ => default_reference(&id),
        };
        let (version, created) = (1, draft.time);
        let provision =
            Provision { id, party, commitment, status, version, reference, created, updated, changed };
        self.provisions.push(provision);
    }

    /// Moves the living provisions of the chosen parties to another status. One that ends returns the bond; one that
    /// no longer quotes loses its orders.
    pub(crate) fn change_provisions(
        &mut self,
        draft: &mut Draft<'_>,
        status: ProvisionStatus,
        chosen: impl Fn(u16) -> bool,
    ) {
        let mut provisions = std::mem::take(&mut self.provisions);
        let is_meant = |own: &&mut Provision| own.is_alive() && own.status != status && chosen(own.party);
        for provision in provisions.iter_mut().filter(is_meant) {
            provision.status = status;
            (provision.updated, provision.changed) = (draft.time, Some(draft.transaction.clone()));
            if !provision.is_alive() {
                let (general, bond) =
                    (self.general_key(provision.party), self.party_key(provision.party, Kind::Bond));
                draft.transfer(bond, general, draft.world.balance(bond), "BOND_HIGH");
            }
            if status != ProvisionStatus::Active {
                self.book.end(draft, Status::Stopped, |order| order.provision == provision.id);
            }
        }
        self.provisions = provisions;
    }

    /// Suspends a provision for an auction and takes a thousandth of its bond.
    pub(crate) fn undeploy_provision(&mut self, draft: &mut Draft<'_>) {
        let bond = self.party_key(PROVIDERS[1], Kind::Bond);
        let penalty = draft.world.balance(bond) / 1_000;
        draft.transfer(bond, self.network_key(Kind::Insurance), penalty, "BOND_SLASHING");
        self.change_provisions(draft, ProvisionStatus::Undeployed, |party| party == PROVIDERS[1]);
    }

    /// The parties of active provisions, with their commitment and their share of all commitments.
    pub(crate) fn shares(&self) -> Vec<(u16, i128, f64)> {
        let active = || self.provisions.iter().filter(|own| own.status == ProvisionStatus::Active);
        let total: i128 = active().map(|provision| provision.commitment).sum();
        let share = |provision: &Provision| provision.commitment as f64 / (total.max(1)) as f64;
        active().map(|provision| (provision.party, provision.commitment, share(provision))).collect()
    }

    /// Pays the liquidity fees collected so far to the providers by their shares.
    pub(crate) fn distribute_fees(&self, draft: &mut Draft<'_>) {
        let pool = self.network_key(Kind::FeesLiquidity);
        let collected = draft.world.balance(pool);
        for (party, _, share) in self.shares() {
            // Rounded up, so that nothing stays.
            let due = (collected as f64 * share) as i128 + 1;
            draft.take(pool, self.general_key(party), due, "LIQUIDITY_FEE_DISTRIBUTE");
        }
    }

    /// Moves each provider's orders with the price: [`LEVELS`] on each side, the second provider's further away.
    pub(crate) fn quote(&mut self, draft: &mut Draft<'_>) {
        let (price, usual_size) = (self.price(), self.template().size);
        let step = (price * 12 / 10_000).max(1);
        let quoting = |own: &&Provision| own.is_alive() && own.status != ProvisionStatus::Undeployed;
        for provision in self.provisions.iter().filter(quoting) {
            let all_again = draft.random.chance(15 * draft.pace / 1_000);
            for (level, buy) in (0..LEVELS).flat_map(|level| [(level, true), (level, false)]) {
                let offset = step * (1 + 2 * level + i64::from(provision.party));
                let size = usual_size * (6 + 4 * level);
                let wanted = if buy { price - offset } else { price + offset }.max(1);
                let own = |order: &&mut Order| {
                    (order.buy, order.level) == (buy, level) && order.provision == provision.id
                };
                let Some(order) = self.book.orders.iter_mut().find(own) else {
                    draft.begin_transaction();
                    let order = Order::limit(draft, provision.party, buy, wanted, size);
                    self.book.add(draft, Order { provision: provision.id.clone(), level, ..order });
                    continue;
                };
                let moved = (order.price - wanted).abs();
                if all_again || moved * 5 > offset * 4 || order.remaining * 3 < size {
                    draft.begin_transaction();
                    (order.price, order.size, order.remaining) = (wanted, size, size);
                    order.version += 1;
                    order.change(draft);
                }
            }
        }
    }

    /// Writes one row for every provision that the block changed.
    pub(crate) fn write_provisions(&mut self, draft: &mut Draft<'_>) {
        for provision in &mut self.provisions {
            let Some(hash) = provision.changed.take() else { continue };
            // Fees are hundredths of a percent, one more with each version.
            let fee = 9 + 5 * i64::from(provision.party) + provision.version;
            row! { draft, liquidity_provisions:
                id: provision.id, party_id: draft.world.party_id(provision.party),
                created_at: provision.created, updated_at: provision.updated,
                market_id: draft.world.market_id(self.number), commitment_amount: provision.commitment,
                fee: format!("0.{fee:04}000000000000"), sells: shape(&provision.id, 3),
                buys: shape(&provision.id, 2), version: provision.version,
                status: label("STATUS", provision.status), reference: provision.reference, tx_hash: hash,
            }
        }
        self.provisions.retain(|own| PROVIDERS.contains(&own.party) || own.is_alive());
    }
}

/// The promised orders of one side of the book; `reference` is 3 for the best ask, 2 for the best bid.
fn shape(id: &str, reference: i64) -> Value {
    let orders = (0..LEVELS).map(|level| {
        let (proportion, offset) = (10 - 3 * level, (1 + 2 * level).to_string());
        json!({
            "order_id": format!("{}{reference}{level}", &id[..62]),
            "liquidity_order": {"reference": reference, "proportion": proportion, "offset": offset},
        })
    });
    orders.collect()
}
