//! Liquidity providers of a market: their provisions and bonds, their orders around the price, and the fees
//! that they earn.

use crate::{
    block::Draft,
    catalogue::{ODD_TEXTS, units},
    market::{Fate, Market, State},
    order::{Order, Status},
    plan::Plan,
    provision::{LEVELS, Provision, ProvisionStatus},
    world::{Key, Kind, World, reason},
};

impl Market {
    /// Makes the steps of the market's providers that are due at this height.
    pub(crate) fn step_provisions(&mut self, world: &mut World, draft: &mut Draft, plan: &Plan) {
        if !matches!(self.fate, Fate::Trades | Fate::Settles) {
            return;
        }
        let asset = self.asset();
        if self.in_auction() || self.state == State::Active {
            for party in [0, 1] {
                let usual = units(asset, 1_500_000 - 400_000 * i128::from(party));
                if self.provisions.iter().all(|provision| provision.party != party)
                    && world.balance(self.general_key(party)) > usual * 4
                {
                    self.commit(world, draft, party, usual);
                }
            }
        }
        if self.state != State::Active {
            return;
        }
        let (height, number) = (draft.height, self.number);
        let due = |per_mille: u64| height == plan.height_at(per_mille) + u64::from(number);
        match number % 3 {
            0 if due(300) => self.commit(world, draft, 2, units(asset, 250_000)),
            0 if due(550) => {
                draft.begin_transaction();
                self.end_provisions(world, draft, ProvisionStatus::Cancelled, |party| party == 2);
            }
            // The party cannot pay the bond: the provision is rejected.
            1 if due(350) => self.commit(world, draft, 3, units(asset, 900_000_000_000)),
            _ => {}
        }
        if due(450) {
            self.amend_provision(world, draft, units(asset, 500_000));
        } else if due(750) {
            self.amend_provision(world, draft, -units(asset, 300_000));
        }
        if (height + u64::from(number) * 7).is_multiple_of(50) {
            self.distribute_fees(world, draft);
        }
    }

    /// Whether a party provides liquidity in this market.
    pub(crate) fn is_provider(&self, party: u16) -> bool {
        self.provisions.iter().any(|provision| provision.party == party && provision.is_alive())
    }

    fn commit(&mut self, world: &mut World, draft: &mut Draft, party: u16, commitment: i128) {
        draft.begin_transaction();
        let general = self.general_key(party);
        let status = match self.state {
            _ if world.balance(general) < commitment => ProvisionStatus::Rejected,
            State::Active => ProvisionStatus::Active,
            _ => ProvisionStatus::Pending,
        };
        if status != ProvisionStatus::Rejected {
            world.transfer(draft, general, self.party_key(party, Kind::Bond), commitment, reason::BOND_LOW);
        }
        let reference = match party {
            0 => Some(format!("lp-{}", draft.random.hex(8))),
            1 => Some((*draft.random.pick(ODD_TEXTS)).to_owned()),
            2 => Some(String::new()),
            _ => None,
        };
        self.provisions.push(Provision::new(draft, party, commitment, status, reference));
    }

    /// Changes the commitment of the first provider, and its bond.
    fn amend_provision(&mut self, world: &mut World, draft: &mut Draft, more: i128) {
        draft.begin_transaction();
        let (bond, general) = (self.party_key(0, Kind::Bond), self.general_key(0));
        let chosen = |p: &&mut Provision| p.party == 0 && p.status == ProvisionStatus::Active;
        let Some(provision) = self.provisions.iter_mut().find(chosen) else { return };
        let moved = if more > 0 {
            world.take(draft, general, bond, more, reason::BOND_LOW)
        } else {
            -world.take(draft, bond, general, -more, reason::BOND_HIGH)
        };
        provision.amend(draft, moved);
    }

    /// Ends the provisions of the chosen parties: cancels their orders and returns their bonds.
    fn end_provisions(
        &mut self,
        world: &mut World,
        draft: &mut Draft,
        status: ProvisionStatus,
        chosen: impl Fn(u16) -> bool,
    ) {
        let asked = |provision: &&mut Provision| provision.is_alive() && chosen(provision.party);
        let (market, asset) = (self.number, self.asset());
        for provision in self.provisions.iter_mut().filter(asked) {
            let party = provision.party;
            let general = Key::general(asset, party);
            let bond = Key { market, kind: Kind::Bond, ..general };
            let held = world.balance(bond);
            world.transfer(draft, bond, general, held, reason::BOND_HIGH);
            provision.set_status(draft, status);
            self.book.end(draft, Status::Cancelled, |order| order.provision.as_ref() == Some(&provision.id));
        }
    }

    /// Ends every provision of a market that has settled.
    pub(crate) fn stop_provisions(&mut self, world: &mut World, draft: &mut Draft) {
        self.distribute_fees(world, draft);
        self.end_provisions(world, draft, ProvisionStatus::Stopped, |_| true);
    }

    /// Makes the provisions of the opening auction active.
    pub(crate) fn activate_provisions(&mut self, draft: &Draft) {
        for provision in self.provisions.iter_mut().filter(|p| p.status == ProvisionStatus::Pending) {
            provision.set_status(draft, ProvisionStatus::Active);
        }
    }

    /// Suspends one provision for an auction and takes a thousandth of its bond.
    pub(crate) fn undeploy_provision(&mut self, world: &mut World, draft: &mut Draft) {
        let insurance = self.network_key(Kind::Insurance);
        let active = |p: &Provision| p.status == ProvisionStatus::Active;
        let Some(at) = self.provisions.iter().rposition(active) else { return };
        let bond = self.party_key(self.provisions[at].party, Kind::Bond);
        let provision = &mut self.provisions[at];
        world.take(draft, bond, insurance, provision.commitment / 1_000, reason::BOND_SLASHING);
        provision.set_status(draft, ProvisionStatus::Undeployed);
        self.book.end(draft, Status::Stopped, |order| order.provision.as_ref() == Some(&provision.id));
    }

    /// Reactivates provisions after an auction, with their whole bond.
    pub(crate) fn redeploy_provisions(&mut self, world: &mut World, draft: &mut Draft) {
        for at in 0..self.provisions.len() {
            if self.provisions[at].status == ProvisionStatus::Undeployed {
                let party = self.provisions[at].party;
                let bond = self.party_key(party, Kind::Bond);
                let missing = self.provisions[at].commitment - world.balance(bond);
                world.take(draft, self.general_key(party), bond, missing, reason::BOND_LOW);
                self.provisions[at].set_status(draft, ProvisionStatus::Active);
            }
        }
    }

    /// The parties of active provisions, with their commitment and their share of all commitments.
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
            world.take(draft, pool, self.general_key(*party), due, reason::LIQUIDITY_FEE_DISTRIBUTE);
        }
    }

    /// Moves each provider's orders to the price: [`LEVELS`] on each side, the second provider's further
    /// away.
    pub(crate) fn quote(&mut self, draft: &mut Draft, pace: u64) {
        let (price, usual_size) = (self.price(), self.template().size);
        let step = (price * 12 / 10_000).max(1);
        for at in 0..self.provisions.len() {
            let provision = &self.provisions[at];
            if !matches!(provision.status, ProvisionStatus::Active | ProvisionStatus::Pending) {
                continue;
            }
            let (party, id) = (provision.party, provision.id.clone());
            let all_again = draft.random.chance(15 * pace / 1_000);
            for level in 0..LEVELS {
                let offset = step * (1 + 2 * level + i64::from(party));
                let size = usual_size * (6 + 4 * level);
                for buy in [true, false] {
                    let wanted = if buy { price - offset } else { price + offset }.max(1);
                    let own = |order: &Order| {
                        order.provision.as_ref() == Some(&id) && (order.buy, order.level) == (buy, level)
                    };
                    let Some(order) = self.book.orders.iter_mut().find(|order| own(order)) else {
                        draft.begin_transaction();
                        let order = Order::limit(draft, party, buy, wanted, size);
                        self.book.add(draft, Order { provision: Some(id.clone()), level, ..order });
                        self.data_changed = true;
                        continue;
                    };
                    let moved = (order.price - wanted).abs();
                    if all_again || moved * 5 > offset * 4 || order.remaining * 3 < size {
                        draft.begin_transaction();
                        order.amend(draft, wanted, size, size);
                        self.data_changed = true;
                    }
                }
            }
        }
    }

    /// Writes one row for every provision that the block changed, and removes those that ended.
    pub(crate) fn write_provisions(&mut self, world: &World, draft: &mut Draft) {
        for provision in &mut self.provisions {
            provision.write_changes(world, draft, self.number);
        }
        self.provisions.retain(|provision| provision.party < 2 || provision.is_alive());
    }
}
