//! Requests derived from the document's parameters, with values from a database.

use std::collections::BTreeMap;

use mesh_testbed::Database;
use mesh_tests::fixture::UNKNOWN_ID;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::openapi::document::{Document, Operation, Parameter};

/// Sources of parameter values: names of parameters, and a SQL statement that returns values as text.
const VALUE_SOURCES: [(&[&str], &str); 10] = [
    (&["id"], "SELECT DISTINCT id FROM withdrawals ORDER BY id LIMIT 40"),
    (&["oracleSpecId"], "SELECT DISTINCT id FROM oracle_specs ORDER BY id LIMIT 40"),
    (&["party"], "SELECT party_id FROM accounts WHERE party_id <> '' ORDER BY party_id LIMIT 3"),
    (&["market"], "SELECT DISTINCT market_id FROM accounts WHERE market_id <> '' ORDER BY market_id LIMIT 3"),
    (&["marketId", "filter.marketIds"], "SELECT DISTINCT id FROM markets ORDER BY id LIMIT 3"),
    (&["candleId"], "SELECT 'trades_candle_1_minute_' || market_id FROM trades GROUP BY market_id LIMIT 3"),
    (&["filter.assetIds", "assetId"], "SELECT DISTINCT asset_id FROM accounts ORDER BY asset_id LIMIT 3"),
    (&["partyId"], "SELECT DISTINCT party_id FROM delegations ORDER BY party_id LIMIT 3"),
    (&["nodeId"], "SELECT DISTINCT node_id FROM delegations ORDER BY node_id LIMIT 3"),
    (&["epochId", "filter.fromEpoch", "filter.toEpoch"], "SELECT max(epoch_id)::text FROM delegations"),
];

/// Values of parameters, by name.
#[derive(Default)]
pub(crate) struct Values(BTreeMap<String, Vec<String>>);

impl Values {
    /// Reads the values from a database.
    pub(crate) async fn read(database: &Database) -> Self {
        let client = database.connect().await;
        let mut values = BTreeMap::new();
        for (names, statement) in VALUE_SOURCES {
            let rows = client.query(statement, &[]).await.unwrap();
            let found: Vec<String> = rows.iter().filter_map(|row| row.get(0)).collect();
            for name in names {
                values.insert((*name).to_owned(), found.clone());
            }
        }
        Self(values)
    }

    /// Adds a value.
    pub(crate) fn put(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), vec![value.to_owned()]);
    }

    /// Values for a parameter: those of the database, else those that its schema allows.
    fn texts(&self, document: &Document, parameter: Parameter<'_>) -> Vec<String> {
        let known_values = self.0.get(parameter.name).filter(|known_values| !known_values.is_empty());
        if let Some(known_values) = known_values {
            return known_values.clone();
        }
        match &parameter.json["example"] {
            Value::String(example) => return vec![example.clone()],
            Value::Array(examples) => {
                return examples.iter().map(|example| example.as_str().unwrap().to_owned()).collect();
            }
            _ => {}
        }
        let schema = &parameter.json["schema"];
        let schema = schema.get("items").unwrap_or(schema);
        let schema = document.resolve(schema).map_or(schema, |(_, schema)| schema);
        if let Some(names) = schema["enum"].as_array() {
            return names.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        }
        let texts: &[&str] = match schema["type"].as_str() {
            Some("boolean") => &["true", "false"],
            Some("integer") => &["1", "3"],
            Some("string") if schema["format"] == "int64" || schema["format"] == "uint64" => {
                &["0", "1687258799120456000"]
            }
            Some("string") if schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("[Tt ]")) => {
                &["0", "1687258799120456000", "2023-06-20T10:59:59.120456Z"]
            }
            Some("string") if schema["pattern"].is_null() => &["text"],
            _ => &[UNKNOWN_ID],
        };
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    /// Targets of an operation: with the required parameters alone, and with one additional parameter, in all
    /// their values.
    pub(crate) fn targets(&self, document: &Document, operation: &Operation<'_>) -> Vec<String> {
        let parameters = document.parameters(operation);
        let in_target = parameters.into_iter().filter(|parameter| parameter.place != "header");
        let (required, optional): (Vec<_>, Vec<_>) = in_target.partition(|parameter| parameter.is_required);
        let first: Vec<(Parameter<'_>, String)> = required
            .iter()
            .map(|parameter| (*parameter, self.texts(document, *parameter).swap_remove(0)))
            .collect();
        let mut targets = vec![target(operation.path, &first)];
        for (at, parameter) in required.iter().enumerate() {
            for text in self.texts(document, *parameter) {
                let mut given = first.clone();
                given[at].1 = text;
                targets.push(target(operation.path, &given));
            }
        }
        for parameter in optional {
            // Cursors are known only after a first page.
            if matches!(parameter.name, "pagination.after" | "pagination.before")
                && !self.0.contains_key(parameter.name)
            {
                continue;
            }
            let texts = self.texts(document, parameter);
            for text in &texts {
                let mut given = first.clone();
                given.push((parameter, text.clone()));
                targets.push(target(operation.path, &given));
            }
            if parameter.json["schema"]["type"] == "array" {
                let mut given = first.clone();
                given.extend(texts.into_iter().map(|text| (parameter, text)));
                targets.push(target(operation.path, &given));
            }
        }
        targets
    }
}

/// Path and query of a request.
fn target(path: &str, given: &[(Parameter<'_>, String)]) -> String {
    let mut path = path.to_owned();
    let mut query = String::new();
    for (parameter, text) in given {
        let text = utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        match parameter.place {
            "path" => path = path.replace(&format!("{{{}}}", parameter.name), &text),
            _ => {
                query.push(if query.is_empty() { '?' } else { '&' });
                query.push_str(&format!("{}={text}", parameter.name));
            }
        }
    }
    path + &query
}

/// The text of the first member of this name, at any depth.
pub(crate) fn first_text(value: &Value, name: &str) -> Option<String> {
    match value {
        Value::Object(members) => match members.get(name).and_then(Value::as_str) {
            Some(text) => Some(text.to_owned()),
            None => members.values().find_map(|value| first_text(value, name)),
        },
        Value::Array(list) => list.iter().find_map(|value| first_text(value, name)),
        _ => None,
    }
}
