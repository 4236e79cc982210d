//! Requests for a list, made by the contract: its filters with values that occur in its rows.

use std::collections::BTreeSet;

use mesh_oracles::{Leaf, Listing, leaves};
use prost_reflect::Kind;
use proto_msgs::{Contract, Format, OperationInfo};
use rand::{Rng as _, rngs::SmallRng, seq::IndexedRandom as _};
use serde_json::Value;

use crate::fixture::UNKNOWN_ID;

const INTERVALS: [&str; 7] = ["block", "1_minute", "5_minutes", "15_minutes", "1_hour", "6_hours", "1_day"];

/// The operations of the contract that answer with pages of what the store has.
pub fn lists() -> impl Iterator<Item = &'static OperationInfo> {
    let has_pages = |row: &&OperationInfo| row.request.get_field_by_name("pagination").is_some();
    Contract::get().operations().iter().filter(has_pages)
}

/// The requests for an operation without optional parameters; those for candles name an interval of a market.
pub fn bases(operation: &OperationInfo, markets: &[String]) -> Vec<String> {
    let path = operation.template();
    if operation.request.get_field_by_name("candle_id").is_none() {
        return vec![format!("{path}?")];
    }
    let ids = markets.iter().flat_map(|market| INTERVALS.map(|interval| format!("{interval}_{market}")));
    ids.map(|id| format!("{path}?candleId=trades_candle_{id}")).collect()
}

/// Requests with filters: each filter with up to `most` of the values that occur, one that does not, and for
/// up to `most` rows several filters with values of that row.
pub fn filtered(
    operation: &OperationInfo,
    base: &str,
    listing: &Listing,
    (most, random): (usize, &mut SmallRng),
) -> Vec<String> {
    let leaves = leaves(&operation.request);
    let is_filter = |leaf: &&Leaf| {
        Contract::get().rule(&leaf.field).missing.is_none()
            && !["at_block", "chain_id"].contains(&leaf.field.name())
            && !leaf.name.starts_with("pagination.")
    };
    let leaves: Vec<&Leaf> = leaves.iter().filter(is_filter).collect();
    let nodes: Vec<&Value> = listing.rows.iter().map(|row| &row.node).collect();
    let mut texts = Vec::new();
    nodes.iter().for_each(|node| collect_texts(node, &mut texts));
    // Thousands of rows have few different values.
    let texts: BTreeSet<&str> = texts.into_iter().collect();
    let mut targets = BTreeSet::new();
    for leaf in &leaves {
        let mut values = accepted(leaf, texts.iter().copied().collect());
        values.sort_unstable();
        values.dedup();
        // Without rows not even a flag has values that occur.
        values.retain(|_| !nodes.is_empty());
        let mut chosen: Vec<&str> = values.choose_multiple(random, most).map(String::as_str).collect();
        chosen.extend(if matches!(leaf.field.kind(), Kind::String) { Some(UNKNOWN_ID) } else { None });
        targets.extend(chosen.into_iter().map(|value| format!("{base}&{}={value}", leaf.name)));
    }
    for node in nodes.choose_multiple(random, most) {
        let given = leaves.iter().filter(|_| random.random_bool(0.6)).copied().collect::<Vec<_>>();
        let mut given: Vec<(&Leaf, String)> = given
            .into_iter()
            .filter_map(|leaf| Some((leaf, values(leaf, node).choose(random)?.clone())))
            .collect();
        sort_bounds(&mut given);
        let mut target = base.to_owned();
        for (leaf, value) in given {
            let value =
                if random.random_bool(0.2) && value.len() == 64 { value.to_uppercase() } else { value };
            target.push_str(&format!("&{}={value}", leaf.name));
            if let Some(other) = nodes.choose(random).filter(|_| leaf.field.is_list()) {
                values(leaf, other)
                    .iter()
                    .for_each(|other| target.push_str(&format!("&{}={other}", leaf.name)));
            }
        }
        targets.insert(target);
    }
    targets.into_iter().collect()
}

/// Values of a row that a filter accepts.
fn values(leaf: &Leaf, node: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    collect_texts(node, &mut texts);
    accepted(leaf, texts)
}

/// Values that a filter accepts, of these texts.
fn accepted(leaf: &Leaf, mut texts: Vec<&str>) -> Vec<String> {
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let is_hex = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    texts.retain(|text| !text.is_empty());
    match leaf.field.kind() {
        Kind::Bool => return vec!["true".to_owned(), "false".to_owned()],
        Kind::Enum(names) => texts.retain(|text| names.get_value_by_name(text).is_some()),
        Kind::String => match Contract::get().rule(&leaf.field).format {
            Format::Hex64 => texts.retain(|text| is_hex(text)),
            Format::Party | Format::PartyOrZeros => texts.retain(|text| is_hex(text) || *text == "network"),
            _ => texts.retain(|text| is_word(text) && text.len() <= 64),
        },
        _ => {
            let numbers =
                texts.iter().filter_map(|text| text.parse::<i64>().ok()).filter(|number| *number > 0);
            let around = |number: i64| [number - 1, number, number.saturating_add(1)];
            let is_bound = bound(leaf).is_some();
            return numbers
                .flat_map(|number| if is_bound { around(number) } else { [number; 3] })
                .map(|number| number.to_string())
                .collect();
        }
    }
    texts.into_iter().map(str::to_owned).collect()
}

fn collect_texts<'a>(node: &'a Value, texts: &mut Vec<&'a str>) {
    match node {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect_texts(member, texts)),
        _ => {}
    }
}

/// Whether a parameter is the lower (`false`) or the upper bound of a range.
fn bound(leaf: &Leaf) -> Option<bool> {
    let name = leaf.field.name();
    let starts = |words: [&str; 2]| words.iter().any(|word| name.starts_with(word));
    (starts(["from_", "start_"]) || starts(["to_", "end_"])).then(|| starts(["to_", "end_"]))
}

/// Puts the lower bound of a range before the upper one.
fn sort_bounds(given: &mut [(&Leaf, String)]) {
    let place = |is_upper| given.iter().position(|(leaf, _)| bound(leaf) == Some(is_upper));
    let (Some(lower), Some(upper)) = (place(false), place(true)) else { return };
    let number = |place: usize| given[place].1.parse::<i64>().unwrap_or_default();
    if number(upper) < number(lower) {
        let (low, high) = (given[upper].1.clone(), given[lower].1.clone());
        (given[lower].1, given[upper].1) = (low, high);
    }
}
