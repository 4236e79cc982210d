//! Oracle specifications: two for each market, and others so that every form of the contract occurs.

use std::collections::BTreeMap;

use mesh_store::TimeUs;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    block::Draft,
    catalogue::{CATALOGUE, OracleForm, UNSET},
    market::{Market, State},
    plan::Plan,
    random::Random,
};

/// Number of the first specification of a market.
const MARKET_BASE: u64 = 1_000;

fn id_of(plan: &Plan, number: u64) -> String {
    Random::new(plan.seed, 0x6f72_6163_6c65 + number).id()
}

/// Ids of the specifications that settle a market and end its trading.
pub(crate) fn of_market(plan: &Plan, market: u16) -> [String; 2] {
    let number = MARKET_BASE + 2 * u64::from(market);
    [number, number + 1].map(|number| id_of(plan, number))
}

/// All specifications of the network: when each was created, and whether it is active.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Oracles(BTreeMap<u64, (TimeUs, bool)>);

impl Oracles {
    /// Writes the specifications that are created or deactivated in this block.
    pub(crate) fn step(&mut self, draft: &mut Draft<'_>, markets: &[Market]) {
        let height = draft.height;
        let others = (0..CATALOGUE.oracles.len() as u64).map(|number| {
            let ends = number % 5 == 2 && height >= draft.plan.height_at(300 + number * 45).max(3);
            (number, height >= draft.plan.height_at(5 + number * 40).max(2), ends)
        });
        let of_markets = markets.iter().filter(|market| !market.times.is_empty()).flat_map(|market| {
            let number = MARKET_BASE + 2 * u64::from(market.number);
            let (ends, terminates) = (market.has_ended(), market.state == State::TradingTerminated);
            [(number, true, ends), (number + 1, true, ends || terminates)]
        });
        for (number, begins, ends) in others.chain(of_markets) {
            let life = match self.0.get(&number) {
                None if begins => (draft.time, true),
                Some(&(created, true)) if ends => (created, false),
                _ => continue,
            };
            draft.begin_transaction();
            write(draft, number, life);
            self.0.insert(number, life);
        }
    }
}

fn write(draft: &mut Draft<'_>, number: u64, (created, active): (TimeUs, bool)) {
    let form = form_of(draft.plan, number);
    row! { draft, oracle_specs:
        id: id_of(draft.plan, number), created_at: created,
        updated_at: if active { UNSET } else { draft.time }, signers: form.signers,
        filters: form.filters, status: if active { "STATUS_ACTIVE" } else { "STATUS_DEACTIVATED" },
        internal_conditions: form.internal,
    }
}

fn outside(signer: &Value, property: &Value, operator: &str, value: &str) -> OracleForm {
    let condition = json!({"operator": format!("OPERATOR_{operator}"), "value": value});
    OracleForm {
        signers: Some(json!([signer])),
        filters: Some(json!([{"key": property, "conditions": [condition]}])),
        internal: None,
    }
}

fn form_of(plan: &Plan, number: u64) -> OracleForm {
    let Some(place) = number.checked_sub(MARKET_BASE) else {
        return CATALOGUE.oracles[number as usize].clone();
    };
    let signer = json!({"pubKey": {"key": Random::new(plan.seed, 0x7369_676e + number).id()}});
    let template = CATALOGUE.template((place / 2) as u16);
    let name = format!("prices.{}.value", template.code);
    let price = json!({"name": name, "type": "TYPE_INTEGER", "numberDecimalPlaces": template.decimals});
    let ended = json!({"name": "trading.terminated", "type": "TYPE_BOOLEAN"});
    match (place % 2, place / 2 % 3) {
        (0, _) => outside(&signer, &price, "GREATER_THAN", "0"),
        (_, 1) => {
            let end = json!([{"operator": "OPERATOR_GREATER_THAN_OR_EQUAL", "value": "1775001600"}]);
            OracleForm { internal: Some(end), ..OracleForm::default() }
        }
        _ => outside(&signer, &ended, "EQUALS", "true"),
    }
}
