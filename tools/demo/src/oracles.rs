//! Oracle specifications: two for each market, and others so that every form of the contract occurs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    block::Draft,
    catalogue::TEMPLATES,
    json::jsonb,
    market::{Market, State},
    moment::Moment,
    plan::Plan,
    random::Random,
    tables::Table,
};

/// Number of specifications that belong to no market.
const FREE: u64 = 14;
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
        for number in 0..FREE {
            if draft.height >= plan.height_at(5 + number * 40).max(2) {
                self.create(draft, plan, number);
            }
            if number % 5 == 2 && draft.height >= plan.height_at(300 + number * 45).max(3) {
                self.deactivate(draft, plan, number);
            }
        }
        for market in markets.iter().filter(|market| market.times.proposed != Moment::UNSET) {
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
    let row = draft.rows.row(Table::OracleSpecs).text(&id_of(plan, number)).time(life.created);
    let mut row = row.time(if life.active { Moment::UNSET } else { draft.time });
    for value in [&form.signers, &form.filters] {
        row = row.optional_text(value.as_ref().map(jsonb).as_deref());
    }
    let row = row.text(if life.active { "STATUS_ACTIVE" } else { "STATUS_DEACTIVATED" });
    row.text(&hash).time(draft.time).optional_text(form.internal.as_ref().map(jsonb).as_deref()).end();
}

/// The content of a specification: external (signers and filters) or the network's own clock.
struct Form {
    signers: Option<Value>,
    filters: Option<Value>,
    internal: Option<Value>,
}

fn outside(signers: Value, filters: Value) -> Form {
    Form { signers: Some(signers), filters: Some(filters), internal: None }
}

fn clock(conditions: Value) -> Form {
    Form { signers: None, filters: None, internal: Some(conditions) }
}

fn filter(key: Value, conditions: Value) -> Value {
    Value::Object([("key".to_owned(), key), ("conditions".to_owned(), conditions)].into_iter().collect())
}

fn condition(operator: &str, value: &str) -> Value {
    json!({"operator": operator, "value": value})
}

fn form_of(plan: &Plan, number: u64) -> Form {
    let mut random = Random::new(plan.seed, 0x7369_676e + number);
    let key = json!({"pubKey": {"key": random.id()}});
    let address = json!({"ethAddress": {"address": format!("0x{}", random.hex(40))}});
    if number >= MARKET_BASE {
        let market = (number - MARKET_BASE) / 2;
        let template = &TEMPLATES[market as usize % TEMPLATES.len()];
        let price = json!({
            "name": format!("prices.{}.value", template.code),
            "type": "TYPE_INTEGER",
            "numberDecimalPlaces": template.decimals,
        });
        return match (number % 2, market % 3) {
            (0, _) => {
                let positive = json!([condition("OPERATOR_GREATER_THAN", "0")]);
                outside(json!([key]), json!([filter(price, positive)]))
            }
            (_, 1) => clock(json!([condition("OPERATOR_GREATER_THAN_OR_EQUAL", "1775001600")])),
            _ => {
                let done = json!({"name": "trading.terminated", "type": "TYPE_BOOLEAN"});
                outside(json!([key]), json!([filter(done, json!([condition("OPERATOR_EQUALS", "true")]))]))
            }
        };
    }
    free_form(number, &key, &address, &mut random)
}

/// Forms that no market of the demo network needs, but clients must parse: by number, the signers (`k` the
/// key, `a` the address, `o` another key) and the filters. Missing numbers are clocks.
const FREE_FORMS: [(u64, &str, &str); 12] = [
    (
        1,
        "a",
        r#"[{"key": {"name": "eth.block.time", "type": "TYPE_TIMESTAMP"},
             "conditions": [{"operator": "OPERATOR_LESS_THAN", "value": "1798761600"}]}]"#,
    ),
    (
        2,
        "kao",
        r#"[{"key": {"name": "index.value", "type": "TYPE_DECIMAL", "numberDecimalPlaces": 0},
             "conditions": [{"operator": "OPERATOR_GREATER_THAN", "value": "0.5"},
                            {"operator": "OPERATOR_LESS_THAN_OR_EQUAL", "value": "99.5"}]},
            {"key": {"name": "index.name", "type": "TYPE_STRING"},
             "conditions": [{"operator": "OPERATOR_EQUALS", "value": "DAX"}]}]"#,
    ),
    (3, "k", r#"[{"key": {"name": "ping", "type": "TYPE_EMPTY"}, "conditions": []}]"#),
    (
        4,
        "k",
        r#"[{"key": {"name": "temperature", "type": 2, "numberDecimalPlaces": 18},
             "conditions": [{"operator": 2, "value": "-40"}, {"operator": 5, "value": "60"}]}]"#,
    ),
    (5, "k", r#"[{"key": {"name": "open", "type": 4}, "conditions": [{"operator": 1, "value": "true"}]}]"#),
    (
        6,
        "a",
        r#"[{"key": {"name": "comment, \"quoted\"", "type": "TYPE_STRING"},
             "conditions": [{"operator": "OPERATOR_EQUALS",
                             "value": "Zürich,\r\n\"naïve\" \\N NULL 価格"}]}]"#,
    ),
    (7, "k", r#"[{"key": {"name": "anything", "type": 0}, "conditions": [{"operator": 0, "value": ""}]}]"#),
    (
        8,
        "k",
        r#"[{"key": {"name": "anything", "type": "TYPE_UNSPECIFIED"},
             "conditions": [{"operator": "OPERATOR_UNSPECIFIED", "value": "x"}]}]"#,
    ),
    (9, "k", r#"[{"key": {"name": "ping", "type": 1}, "conditions": [{"operator": 3, "value": "1"}]}]"#),
    (
        10,
        "k",
        r#"[{"key": {"name": "name", "type": 3},
             "conditions": [{"operator": "OPERATOR_EQUALS", "value": ""}]},
            {"key": {"name": "rate", "type": 5},
             "conditions": [{"operator": "OPERATOR_GREATER_THAN_OR_EQUAL", "value": "0.0"}]},
            {"key": {"name": "at", "type": 6},
             "conditions": [{"operator": "OPERATOR_LESS_THAN_OR_EQUAL", "value": "1798761600"}]}]"#,
    ),
    (11, "", "[]"),
    (
        13,
        "ak",
        r#"[{"key": {"name": "volume", "type": "TYPE_INTEGER"},
             "conditions": [{"operator": "OPERATOR_LESS_THAN",
                             "value": "340282366920938463463374607431768211456"}]}]"#,
    ),
];

/// The form of a specification that belongs to no market.
fn free_form(number: u64, key: &Value, address: &Value, random: &mut Random) -> Form {
    let Some((_, signers, filters)) = FREE_FORMS.iter().find(|(known, _, _)| *known == number) else {
        return clock(match number {
            0 => json!([
                condition("OPERATOR_GREATER_THAN_OR_EQUAL", "1767571200"),
                {"operator": 4, "value": "1798761600"},
            ]),
            _ => json!([]),
        });
    };
    let signers = signers.chars().map(|signer| match signer {
        'k' => key.clone(),
        'a' => address.clone(),
        _ => json!({"pubKey": {"key": random.id()}}),
    });
    outside(signers.collect(), serde_json::from_str(filters).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_of_every_form_are_json() {
        for (number, _, filters) in FREE_FORMS {
            assert!(serde_json::from_str::<Value>(filters).is_ok_and(|value| value.is_array()), "{number}");
        }
    }
}
