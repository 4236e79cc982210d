//! Oracle specifications: two for each market, and others so that every form of the contract occurs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    block::Draft,
    catalogue::{CATALOGUE, OracleForm},
    json::jsonb,
    market::{Market, State},
    moment::Moment,
    plan::Plan,
    random::Random,
};

/// Number of the first specification of a market.
const MARKET_BASE: u64 = 1_000;

fn id_of(plan: &Plan, number: u64) -> String {
    Random::new(plan.seed, 0x6f72_6163_6c65 + number).id()
}

/// Ids of the specifications that settle a market and end its trading.
pub(crate) fn of_market(plan: &Plan, market: u16) -> (String, String) {
    let number = MARKET_BASE + 2 * u64::from(market);
    (id_of(plan, number), id_of(plan, number + 1))
}

/// When a specification was created and whether it is active.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Life {
    created: Moment,
    active: bool,
}

/// All specifications of the network.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Oracles {
    lives: BTreeMap<u64, Life>,
}

impl Oracles {
    /// Writes the specifications that are created or deactivated in this block.
    pub(crate) fn step(&mut self, draft: &mut Draft, plan: &Plan, markets: &[Market]) {
        for number in 0..CATALOGUE.oracles.len() as u64 {
            if draft.height >= plan.height_at(5 + number * 40).max(2) {
                self.create(draft, plan, number);
            }
            if number % 5 == 2 && draft.height >= plan.height_at(300 + number * 45).max(3) {
                self.deactivate(draft, plan, number);
            }
        }
        for market in markets.iter().filter(|market| market.is_proposed()) {
            let number = MARKET_BASE + 2 * u64::from(market.number);
            for number in [number, number + 1] {
                self.create(draft, plan, number);
                if market.state.is_final() || (number % 2 == 1 && market.state == State::TradingTerminated) {
                    self.deactivate(draft, plan, number);
                }
            }
        }
    }

    fn create(&mut self, draft: &mut Draft, plan: &Plan, number: u64) {
        if self.lives.contains_key(&number) {
            return;
        }
        draft.begin_transaction();
        let life = Life { created: draft.time, active: true };
        self.lives.insert(number, life);
        write(draft, plan, number, life);
    }

    fn deactivate(&mut self, draft: &mut Draft, plan: &Plan, number: u64) {
        let Some(life) = self.lives.get_mut(&number) else { return };
        if life.active && life.created < draft.time {
            life.active = false;
            let life = *life;
            draft.begin_transaction();
            write(draft, plan, number, life);
        }
    }
}

fn write(draft: &mut Draft, plan: &Plan, number: u64, life: Life) {
    let form = form_of(plan, number);
    let hash = draft.hash();
    let row = draft.rows.row("oracle_specs").text(&id_of(plan, number)).time(life.created);
    let mut row = row.time(if life.active { Moment::UNSET } else { draft.time });
    for value in [&form.signers, &form.filters] {
        row = row.optional_text(value.as_ref().map(jsonb).as_deref());
    }
    let row = row.text(if life.active { "STATUS_ACTIVE" } else { "STATUS_DEACTIVATED" });
    row.text(&hash).time(draft.time).optional_text(form.internal.as_ref().map(jsonb).as_deref()).end();
}

fn outside(signers: Value, filters: Value) -> OracleForm {
    OracleForm { signers: Some(signers), filters: Some(filters), internal: None }
}

fn form_of(plan: &Plan, number: u64) -> OracleForm {
    let Some(place) = number.checked_sub(MARKET_BASE) else {
        return CATALOGUE.oracles[number as usize].clone();
    };
    let key = json!({"pubKey": {"key": Random::new(plan.seed, 0x7369_676e + number).id()}});
    let template = CATALOGUE.template((place / 2) as u16);
    match (place % 2, place / 2 % 3) {
        (0, _) => {
            let price = json!({
                "name": format!("prices.{}.value", template.code),
                "type": "TYPE_INTEGER",
                "numberDecimalPlaces": template.decimals,
            });
            let positive = json!({"operator": "OPERATOR_GREATER_THAN", "value": "0"});
            outside(json!([key]), json!([{"key": price, "conditions": [positive]}]))
        }
        (_, 1) => {
            let end = json!([{"operator": "OPERATOR_GREATER_THAN_OR_EQUAL", "value": "1775001600"}]);
            OracleForm { internal: Some(end), ..OracleForm::default() }
        }
        _ => {
            let done = json!({"name": "trading.terminated", "type": "TYPE_BOOLEAN"});
            let ended = json!({"operator": "OPERATOR_EQUALS", "value": "true"});
            outside(json!([key]), json!([{"key": done, "conditions": [ended]}]))
        }
    }
}
