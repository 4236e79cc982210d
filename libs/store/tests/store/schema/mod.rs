//! The schema against the contract: every table, column, key, index, default and enum label, as data below.

mod expected;

use std::collections::BTreeMap;

use mesh_testbed::Database;

use self::expected::{DEFAULTS, ENUMS, KEYS, OURS, TABLES};

/// Reads "name, then indented lines" into a map of the lines.
fn blocks(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("    ") {
            Some(inner) => found.get_mut(&name).unwrap().push(inner.to_owned()),
            None => {
                name = line.to_owned();
                found.insert(name.clone(), Vec::new());
            }
        }
    }
    found
}

fn words(lines: &[String]) -> Vec<String> {
    lines.iter().flat_map(|line| line.split(' ')).map(ToOwned::to_owned).collect()
}

/// The contract's column as PostgreSQL describes it.
fn described(column: &str) -> String {
    let (name, kind) = column.split_once(':').unwrap();
    let (kind, not_null) = kind.strip_suffix('!').map_or((kind, ""), |kind| (kind, " not null"));
    let full = match kind {
        "id" | "ctext" => "text C",
        "ts" => "timestamp with time zone",
        "big" => "bigamount",
        "num" => "numeric",
        "num16" => "numeric(94,16)",
        "int8" => "bigint",
        "int4" => "integer",
        "int2" => "smallint",
        "bool" => "boolean",
        "float8" => "double precision",
        other => other,
    };
    format!("{name} {full}{not_null}")
}

#[tokio::test]
async fn every_table_has_the_columns_of_the_contract_in_their_order() {
    let database = Database::fresh().await;
    let client = database.connect().await;
    let rows = client
        .query(
            "SELECT relname::text, array_agg(concat(attname, ' ', format_type(atttypid, atttypmod),
                 CASE WHEN collname = 'C' THEN ' C' END, CASE WHEN attnotnull THEN ' not null' END) ORDER BY attnum)
             FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
                 LEFT JOIN pg_collation ON pg_collation.oid = attcollation
             WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
             GROUP BY 1",
            &[],
        )
        .await
        .unwrap();
    let mut found: BTreeMap<String, Vec<String>> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    for ours in OURS {
        assert!(found.remove(ours).is_some(), "no table {ours}");
    }
    let expected: BTreeMap<String, Vec<String>> = blocks(TABLES)
        .into_iter()
        .map(|(table, columns)| (table, words(&columns).iter().map(|column| described(column)).collect()))
        .collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (table, columns) in expected {
        assert_eq!(found[&table], columns, "{table}");
    }
}

#[tokio::test]
async fn every_table_has_the_keys_and_indexes_of_the_contract_and_no_others() {
    let database = Database::fresh().await;
    let client = database.connect().await;
    let rows = client
        .query(
            "SELECT indrelid::regclass::text,
                 concat(CASE WHEN indisprimary THEN 'primary key' WHEN indisunique THEN 'unique'
                     WHEN amname = 'gin' THEN 'gin' ELSE 'index' END,
                     ' (', (SELECT string_agg(coalesce(attname, 'expression'), ', ' ORDER BY place)
                            FROM unnest(indkey::int2[]) WITH ORDINALITY AS part (number, place)
                            LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = number
                            WHERE place <= indnkeyatts), ')')
             FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
             WHERE relnamespace = 'public'::regnamespace AND indpred IS NULL",
            &[],
        )
        .await
        .unwrap();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        found.entry(row.get(0)).or_default().push(row.get(1));
    }
    for ours in OURS {
        found.remove(ours);
    }
    let mut expected = blocks(KEYS);
    for keys in found.values_mut().chain(expected.values_mut()) {
        keys.sort();
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn enum_types_have_the_labels_of_the_contract_in_their_order() {
    let database = Database::fresh().await;
    let client = database.connect().await;
    let rows = client
        .query(
            "SELECT typname::text, array_agg(enumlabel::text ORDER BY enumsortorder)
             FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid GROUP BY 1",
            &[],
        )
        .await
        .unwrap();
    let found: BTreeMap<String, Vec<String>> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let expected: BTreeMap<String, Vec<String>> =
        blocks(ENUMS).into_iter().map(|(name, labels)| (name, words(&labels))).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn defaults_are_those_of_the_contract() {
    let database = Database::fresh().await;
    let client = database.connect().await;
    let rows = client
        .query(
            "SELECT concat(adrelid::regclass, '.', attname, ' ', pg_get_expr(adbin, adrelid))
             FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum ORDER BY 1",
            &[],
        )
        .await
        .unwrap();
    let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, DEFAULTS);
}

#[tokio::test]
async fn a_one_row_table_takes_one_row() {
    let database = Database::fresh().await;
    let client = database.connect().await;
    client.batch_execute("INSERT INTO chain (id) VALUES ('testnet')").await.unwrap();
    client.batch_execute("INSERT INTO chain (id) VALUES ('other')").await.unwrap_err();
    client.batch_execute("INSERT INTO chain VALUES ('other', false)").await.unwrap_err();
}

#[tokio::test]
async fn amounts_hold_78_digits_and_no_fraction() {
    let database = Database::fresh().await;
    let client = database.connect().await;
    let longest = "9".repeat(78);
    let row = client.query_one(&format!("SELECT ('-{longest}'::bigamount)::text"), &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), format!("-{longest}"));
    client.batch_execute(&format!("SELECT '{longest}0'::bigamount")).await.unwrap_err();
}

#[tokio::test]
async fn each_candle_view_has_the_columns_of_the_contract() {
    let database = Database::fresh().await;
    let client = database.connect().await;
    let rows = client
        .query(
            "SELECT relname::text, string_agg(concat(attname, ' ', format_type(atttypid, atttypmod)), ', ' ORDER BY attnum)
             FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
             WHERE relnamespace = 'public'::regnamespace AND relkind = 'v' AND attnum > 0
                 AND relname LIKE 'trades_candle_%' GROUP BY 1",
            &[],
        )
        .await
        .unwrap();
    let mut names = Vec::new();
    for row in &rows {
        names.push(row.get::<_, &str>(0));
        assert_eq!(
            row.get::<_, &str>(1),
            "market_id text, period_start timestamp with time zone, open bigamount, close bigamount, \
             high bigamount, low bigamount, volume numeric, last_update_in_period timestamp with time zone"
        );
    }
    names.sort_unstable();
    assert_eq!(
        names,
        ["15_minutes", "1_day", "1_hour", "1_minute", "5_minutes", "6_hours", "block"]
            .map(|interval| format!("trades_candle_{interval}"))
    );
}
