//! Liquidity providers of a market: their provisions and bonds, their orders around the price, and the fees
//! that they earn.

use crate::{
    block::Draft,
    catalogue::{CATALOGUE, units},
    market::{Fate, Market, State},
    order::{Order, Status},
    plan::Plan,
    provision::{LEVELS, Provision, ProvisionStatus},
    world::{Key, Kind, World},
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
            world.transfer(draft, general, self.party_key(party, Kind::Bond), commitment, "BOND_LOW");
        }
        let reference = match party {
            0 => Some(format!("lp-{}", draft.random.hex(8))),
            1 => Some(draft.random.pick(&CATALOGUE.odd_texts).clone()),
            2 => Some(String::new()),
            _ => None,
        };
        self.provisions.push(Provision {
            id: draft.random.id(),
            party,
            commitment,
            fee: 10 + 5 * i64::from(party),
            status,
            version: 1,
            reference,
            created: draft.time,
            updated: draft.time,
            changed: Some(draft.hash()),
        });
    }

    /// Changes the commitment of the first provider, and its bond: the provision's next version.
    fn amend_provision(&mut self, world: &mut World, draft: &mut Draft, more: i128) {
        draft.begin_transaction();
        let (bond, general) = (self.party_key(0, Kind::Bond), self.general_key(0));
        let chosen = |p: &&mut Provision| p.party == 0 && p.status == ProvisionStatus::Active;
        let Some(provision) = self.provisions.iter_mut().find(chosen) else { return };
        provision.commitment += if more > 0 {
            world.take(draft, general, bond, more, "BOND_LOW")
        } else {
            -world.take(draft, bond, general, -more, "BOND_HIGH")
        };
        provision.fee += 1;
        provision.version += 1;
        provision.set_status(draft, ProvisionStatus::Active);
    }

    /// Ends the provisions of the chosen parties: cancels their orders and returns their bonds.
    pub(crate) fn end_provisions(
        &mut self,
        world: &mut World,
        draft: &mut Draft,
        status: ProvisionStatus,
        chosen: impl Fn(u16) -> bool,
    ) {
        let (market, asset) = (self.number, self.asset());
        let ending = self.provisions.iter_mut().filter(|p| p.is_alive() && chosen(p.party));
        for provision in ending {
            let general = Key::general(asset, provision.party);
            let bond = Key { market, kind: Kind::Bond, ..general };
            let held = world.balance(bond);
            world.transfer(draft, bond, general, held, "BOND_HIGH");
            provision.set_status(draft, status);
            self.book.end(draft, Status::Cancelled, |order| order.provision.as_ref() == Some(&provision.id));
        }
    }

    /// Moves every provision of one status to another.
    pub(crate) fn move_provisions(&mut self, draft: &Draft, from: ProvisionStatus, to: ProvisionStatus) {
        for provision in self.provisions.iter_mut().filter(|provision| provision.status == from) {
            provision.set_status(draft, to);
        }
    }

    /// Suspends one provision for an auction and takes a thousandth of its bond.
    pub(crate) fn undeploy_provision(&mut self, world: &mut World, draft: &mut Draft) {
        let (market, insurance) = (self.number, self.network_key(Kind::Insurance));
        let mut active = self.provisions.iter_mut().rev().filter(|p| p.status == ProvisionStatus::Active);
        let Some(provision) = active.next() else { return };
        let bond = Key { market, kind: Kind::Bond, ..Key::general(insurance.asset, provision.party) };
        world.take(draft, bond, insurance, provision.commitment / 1_000, "BOND_SLASHING");
        provision.set_status(draft, ProvisionStatus::Undeployed);
        self.book.end(draft, Status::Stopped, |order| order.provision.as_ref() == Some(&provision.id));
    }

    /// The parties of active provisions, with their commitment and their share of all commitments.
    pub(crate) fn shares(&self) -> Vec<(u16, i128, f64)> {
        let active = || self.provisions.iter().filter(|p| p.status == ProvisionStatus::Active);
        let total: i128 = active().map(|provision| provision.commitment).sum();
        let share = |provision: &Provision| provision.commitment as f64 / (total.max(1)) as f64;
        active().map(|provision| (provision.party, provision.commitment, share(provision))).collect()
    }

    /// Pays the liquidity fees collected so far to the providers by their shares.
    pub(crate) fn distribute_fees(&self, world: &mut World, draft: &mut Draft) {
        let pool = self.network_key(Kind::FeesLiquidity);
        let collected = world.balance(pool);
        draft.begin_transaction();
        for (party, _, share) in self.shares() {
            // Rounded up, so that nothing stays.
            let due = (collected as f64 * share) as i128 + 1;
            world.take(draft, pool, self.general_key(party), due, "LIQUIDITY_FEE_DISTRIBUTE");
        }
    }

    /// Moves each provider's orders to the price: [`LEVELS`] on each side, the second provider's further
    /// away.
    pub(crate) fn quote(&mut self, draft: &mut Draft, pace: u64) {
        let (price, usual_size) = (self.price(), self.template().size);
        let step = (price * 12 / 10_000).max(1);
        for provision in &self.provisions {
            if !provision.is_alive() || provision.status == ProvisionStatus::Undeployed {
                continue;
            }
            let all_again = draft.random.chance(15 * pace / 1_000);
            for (level, buy) in (0..LEVELS).flat_map(|level| [(level, true), (level, false)]) {
                let offset = step * (1 + 2 * level + i64::from(provision.party));
                let size = usual_size * (6 + 4 * level);
                let wanted = if buy { price - offset } else { price + offset }.max(1);
                let own = |order: &&mut Order| {
                    order.provision.as_ref() == Some(&provision.id)
                        && (order.buy, order.level) == (buy, level)
                };
                if let Some(order) = self.book.orders.iter_mut().find(own) {
                    let moved = (order.price - wanted).abs();
                    if all_again || moved * 5 > offset * 4 || order.remaining * 3 < size {
                        draft.begin_transaction();
                        order.amend(draft, wanted, size);
                    }
                } else {
                    draft.begin_transaction();
                    let order = Order::limit(draft, provision.party, buy, wanted, size);
                    self.book.add(draft, Order { provision: Some(provision.id.clone()), level, ..order });
                }
            }
        }
    }

    /// Writes one row for every provision that the block changed, and removes those that ended.
    pub(crate) fn write_provisions(&mut self, world: &World, draft: &mut Draft) {
        for provision in &mut self.provisions {
            provision.write(world, draft, self.number);
        }
        self.provisions.retain(|provision| provision.party < 2 || provision.is_alive());
    }
}
