//! The examples of the document, which are test cases: see build.rs.

use std::{collections::BTreeMap, sync::LazyLock};

use heck::ToSnakeCase;

use crate::{
    example::{Example, Examples},
    json::{Json, object},
};

/// Examples by the operation's name in snake case.
static EXAMPLES: LazyLock<BTreeMap<String, Examples>> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/examples.json")))
        .expect("the build wrote this file")
});

/// The examples of an operation by its name, e.g. `GetWithdrawal`; none for an operation without cases.
pub(crate) fn of(operation: &str) -> Examples {
    EXAMPLES.get(&operation.to_snake_case()).cloned().unwrap_or_default()
}

/// The examples with this status, as `examples` of a media type; `None` when there are none.
pub(crate) fn named(status: u16, examples: &[Example]) -> Option<Json> {
    let mut named = object! {};
    let wanted: Vec<_> = examples.iter().filter(|example| example.status == status).collect();
    for (at, example) in wanted.iter().enumerate() {
        let value =
            object! { "summary" => example.summary.as_str(), "value" => Json::Raw(example.body.clone()) };
        named.put(&format!("example{}", at + 1), value);
    }
    (!wanted.is_empty()).then_some(named)
}

#[cfg(test)]
mod tests {
    use proto_msgs::Contract;

    use super::*;

    #[test]
    fn every_operation_shows_an_answer_but_streams_of_bytes() {
        for operation in Contract::get().operations() {
            let has_answer = !of(&operation.name).answers.is_empty();
            assert!(has_answer || operation.name == "ExportLedgerEntries", "{}", operation.name);
        }
    }
}
