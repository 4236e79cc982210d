//! Liquidity providers of a market: their commitments and bonds, their orders around the price, and the fees
//! that they earn.

use mesh_store::TimeUs;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    block::Draft,
    catalogue::{CATALOGUE, units},
    market::{Market, State, Trigger},
    order::{Order, Status, default_reference},
    rows::label,
    world::Kind,
};

/// The parties that provide liquidity in all markets.
pub(crate) const PROVIDERS: [u16; 2] = [0, 1];

/// Price levels that a provider offers on each side.
const LEVELS: i64 = 2;

/// Commitments in whole units: the party, the thousandth of the history from which it holds, and, where it is
/// not in every market, the remainder of the market's number by three. The last one that holds counts; 0 ends
/// a provision.
const SCRIPT: [(u16, u64, Option<u16>, i128); 7] = [
    (0, 0, None, 1_500_000),
    (0, 450, None, 2_000_000),
    (0, 750, None, 1_700_000),
    (1, 0, None, 1_100_000),
    (2, 300, Some(0), 250_000),
    (2, 550, Some(0), 0),
    // The party cannot pay the bond: the provision is rejected.
    (3, 350, Some(1), 900_000_000_000),
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Provision {
    id: String,
    commitment: i128,
    status: ProvisionStatus,
    version: i64,
    reference: String,
    created: TimeUs,
}

impl Provision {
    fn new(draft: &mut Draft<'_>, party: u16) -> Self {
        let id = draft.random.id();
        let reference = match party {
            0 => format!("lp-{}", draft.random.hex(8)),
            1 => draft.random.pick(&CATALOGUE.odd_texts).clone(),
            2 => String::new(),
            _ => default_reference(&id),
        };
        let (status, created) = (ProvisionStatus::Pending, draft.time);
        Provision { id, commitment: 0, status, version: 0, reference, created }
    }

    /// Whether the party has orders for it.
    fn quotes(&self) -> bool {
        matches!(self.status, ProvisionStatus::Active | ProvisionStatus::Pending)
    }

    fn is_final(&self) -> bool {
        !self.quotes() && self.status != ProvisionStatus::Undeployed
    }
}

impl Market {
    /// Makes the steps of the market's providers that are due at this height.
    pub(crate) fn step_provisions(&mut self, draft: &mut Draft<'_>) {
        for party in 0..4 {
            let holds = |row: &&(u16, u64, Option<u16>, i128)| {
                let is_here = row.2.is_none_or(|third| self.number % 3 == third);
                row.0 == party && is_here && draft.height >= draft.plan.height_at(row.1)
            };
            if let Some((.., whole)) = SCRIPT.iter().rfind(holds) {
                self.provide(draft, party, units(self.asset(), *whole));
            }
        }
        if self.state == State::Active && (draft.height + u64::from(self.number) * 7).is_multiple_of(50) {
            draft.begin_transaction();
            self.distribute_fees(draft);
        }
    }

    /// The status that the script and the market's state ask for.
    fn wanted_status(&self, draft: &Draft<'_>, party: u16, commitment: i128) -> ProvisionStatus {
        let accounts = [self.general_key(party), self.party_key(party, Kind::Bond)];
        let funds: i128 = accounts.map(|account| draft.world.balance(account)).iter().sum();
        match (self.state, self.auction.trigger) {
            _ if commitment == 0 => ProvisionStatus::Cancelled,
            (State::Settled, _) => ProvisionStatus::Stopped,
            _ if funds < commitment => ProvisionStatus::Rejected,
            (State::Pending, _) => ProvisionStatus::Pending,
            (_, Trigger::UnableToDeployLpOrders) if party == PROVIDERS[1] => ProvisionStatus::Undeployed,
            _ => ProvisionStatus::Active,
        }
    }

    /// Brings a party's provision to what is asked for, with the bond, and writes the row if there is a
    /// change.
    fn provide(&mut self, draft: &mut Draft<'_>, party: u16, commitment: i128) {
        use ProvisionStatus::{Active, Cancelled, Pending, Rejected, Stopped, Undeployed};
        let status = self.wanted_status(draft, party, commitment);
        let known = self.provisions.get(&party).cloned();
        let is_settled = match &known {
            Some(known) => known.is_final() || (known.status, known.commitment) == (status, commitment),
            // Providers wait for their first deposits.
            None => status != Active && status != Pending && party < 3,
        };
        if is_settled {
            return;
        }
        draft.begin_transaction();
        let mut provision = known.unwrap_or_else(|| Provision::new(draft, party));
        if commitment > 0 && commitment != provision.commitment {
            (provision.commitment, provision.version) = (commitment, provision.version + 1);
        }
        provision.status = status;
        let (general, bond) = (self.general_key(party), self.party_key(party, Kind::Bond));
        let held = draft.world.balance(bond);
        let wanted = match status {
            Rejected | Stopped | Cancelled => 0,
            Undeployed => {
                held - draft.take(bond, self.network_key(Kind::Insurance), held / 1_000, "BOND_SLASHING")
            }
            Active | Pending => commitment,
        };
        let held = draft.world.balance(bond);
        draft.transfer(general, bond, wanted - held, "BOND_LOW");
        draft.transfer(bond, general, held - wanted, "BOND_HIGH");
        if !provision.quotes() {
            self.book.end(draft, Status::Stopped, |order| order.provision.0 == provision.id);
        }
        self.write_provision(draft, party, &provision);
        self.provisions.insert(party, provision);
    }

    /// The parties of active provisions, with their commitment and their share of all commitments.
    pub(crate) fn shares(&self) -> Vec<(u16, i128, f64)> {
        let active = || self.provisions.iter().filter(|(_, own)| own.status == ProvisionStatus::Active);
        let total = active().map(|(_, own)| own.commitment).sum::<i128>() as f64;
        active().map(|(party, own)| (*party, own.commitment, own.commitment as f64 / total)).collect()
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

    /// Moves each provider's orders with the price: [`LEVELS`] on each side, the second provider's further
    /// away.
    pub(crate) fn quote(&mut self, draft: &mut Draft<'_>) {
        let (price, usual_size) = (self.price(), self.template().size);
        let step = (price * 12 / 10_000).max(1);
        for (&party, provision) in self.provisions.iter().filter(|(_, provision)| provision.quotes()) {
            let all_again = draft.random.chance(15 * draft.pace / 1_000);
            for (level, buy) in (0..LEVELS).flat_map(|level| [(level, true), (level, false)]) {
                let offset = step * (1 + 2 * level + i64::from(party));
                let size = usual_size * (6 + 4 * level);
                let wanted = if buy { price - offset } else { price + offset }.max(1);
                let own = |order: &&mut Order| {
                    (order.buy, order.provision.1) == (buy, level) && order.provision.0 == provision.id
                };
                match self.book.orders.iter_mut().find(own) {
                    None => {
                        draft.begin_transaction();
                        let order = Order::limit(draft, party, buy, wanted, size);
                        self.book.add(draft, Order { provision: (provision.id.clone(), level), ..order });
                    }
                    Some(order) => {
                        let moved = (order.price - wanted).abs();
                        if all_again || moved * 5 > offset * 4 || order.remaining * 3 < size {
                            draft.begin_transaction();
                            order.amend(draft, wanted, size);
                        }
                    }
                }
            }
        }
    }

    fn write_provision(&self, draft: &mut Draft<'_>, party: u16, provision: &Provision) {
        // Fees are hundredths of a percent, one more with each version.
        let fee = 9 + 5 * i64::from(party) + provision.version;
        row! { draft, liquidity_provisions:
            id: provision.id, party_id: draft.world.party_id(party), created_at: provision.created,
            updated_at: draft.time, market_id: draft.world.market_id(self.number),
            commitment_amount: provision.commitment, fee: format!("0.{fee:04}000000000000"),
            sells: shape(&provision.id, 3), buys: shape(&provision.id, 2), version: provision.version,
            status: label("STATUS", provision.status), reference: provision.reference,
        }
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
