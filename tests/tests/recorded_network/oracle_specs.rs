//! GetOracleSpec: the latest version of every oracle spec.

use serde_json::{Value, json};

use crate::recorded_network::{
    check::{UNKNOWN, with_check},
    recording::with_recording,
};

/// A recorded list (NULL or JSON `null` when absent) in the form of the contract: every scalar and list is
/// present except the number of decimal places, which is left out when unset.
fn list(recorded: Value, item: impl Fn(&Value) -> Value) -> Value {
    match recorded {
        Value::Null => json!([]),
        Value::Array(items) => items.iter().map(item).collect(),
        other => panic!("not a list: {other}"),
    }
}

fn filter(recorded: &Value) -> Value {
    let (name, kind) = (recorded["key"]["name"].as_str(), recorded["key"]["type"].as_str());
    let mut key = json!({"name": name.unwrap_or_default(), "type": kind.unwrap_or("TYPE_UNSPECIFIED")});
    if let Some(places) = recorded["key"].get("numberDecimalPlaces").filter(|places| !places.is_null()) {
        let places = places.as_str().map_or_else(|| places.to_string(), str::to_owned);
        key["numberDecimalPlaces"] = json!(places);
    }
    let condition = |recorded: &Value| {
        let operator = recorded["operator"].as_str().unwrap_or("OPERATOR_UNSPECIFIED");
        json!({"operator": operator, "value": recorded["value"].as_str().unwrap_or_default()})
    };
    json!({"key": key, "conditions": list(recorded["conditions"].clone(), condition)})
}

#[test]
fn every_oracle_spec_is_shown_in_its_latest_version_and_an_unknown_one_is_not_found() {
    with_check("GetOracleSpec", async |recording, check| {
        let table = recording.table("oracle_specs");
        let newest = table.newest(|row| row.text("id"), |row| row.ns("block_time"));
        assert!(newest.len() < table.len(), "some spec has versions");
        for (id, row) in newest {
            let signers = list(row.json("signers"), Value::clone);
            let filters = list(row.json("filters"), filter);
            let data = json!({"external": {"oracle": {"signers": signers, "filters": filters}}});
            let expected = json!({"oracleSpec": {"externalDataSourceSpec": {"spec": {
                "id": id,
                "createdAt": row.ns("created_at").to_string(),
                "updatedAt": row.ns("updated_at").to_string(),
                "status": row.text("status"),
                "data": data,
            }}}});
            for id in [id.to_owned(), id.to_uppercase()] {
                check.same(&format!("/api/v2/oracle/spec/{id}"), &expected, 1).await;
            }
        }
        check.refused(&format!("/api/v2/oracle/spec/{UNKNOWN}"), 404, 5, 190_001).await;
    });
}

#[test]
fn the_column_that_loading_skips_repeats_signers_and_filters() {
    with_recording(async |recording| {
        for row in recording.table("oracle_specs").rows() {
            let oracle = json!({"signers": row.json("signers"), "filters": row.json("filters")});
            assert_eq!(row.json("data"), json!({"external": {"oracle": oracle}}), "{}", row.text("id"));
        }
    });
}
