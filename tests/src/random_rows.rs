//! Random rows for every table that a writer fills, with many equal values, texts in unusual order and NULL:
//! made from the schema, so that a new table has rows, too.

#![allow(clippy::unwrap_used)] // in what the tests share

use rand::{Rng as _, SeedableRng as _, rngs::SmallRng, seq::IndexedRandom as _};
use serde_json::json;
use tokio_postgres::Client;

/// Ids that differ in their first or last digit only.
pub const IDS: [&str; 4] = [
    "0000000000000000000000000000000000000000000000000000000000000001",
    "0000000000000000000000000000000000000000000000000000000000000002",
    "1000000000000000000000000000000000000000000000000000000000000000",
    "f000000000000000000000000000000000000000000000000000000000000000",
];
/// Words that are ids as well, and texts whose byte order differs from that of any language.
const TEXTS: [&str; 10] =
    ["network", "VOTE", "vote_2", "", "v1.10.0", "v1.2.0", "V1.2.0", "é", "z\u{301}", "🚀\"'\\"];
/// Greater than every number that a double represents exactly.
const LARGE: i64 = (1 << 53) + 1;
/// The first block, microseconds since the Unix epoch.
const START_US: i64 = 1_687_255_200_000_000;

/// The columns of the tables that writers fill, except blocks and tables of one row: table, column, base
/// type, whether it may be NULL, labels of an enum.
const COLUMNS: &str = include_str!("columns.sql");

/// A column of a table.
struct Column {
    name: String,
    kind: String,
    is_domain: bool,
    is_nullable: bool,
    labels: Vec<String>,
}

/// Inserts up to `rows` random rows into each table, a few by each statement, so that later ones update
/// earlier ones.
pub async fn insert(client: &Client, rows: usize, random: &mut SmallRng) {
    let mut tables: Vec<(String, Vec<Column>)> = Vec::new();
    for row in client.query(COLUMNS, &[]).await.unwrap() {
        let (table, name, kind): (String, _, _) = (row.get(0), row.get(1), row.get(2));
        let column =
            Column { name, kind, is_domain: row.get(3), is_nullable: row.get(4), labels: row.get(5) };
        match tables.last_mut().filter(|(last, _)| *last == table) {
            Some((_, columns)) => columns.push(column),
            None => tables.push((table, vec![column])),
        }
    }
    for (table, columns) in &tables {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        let row = |number| {
            let mut values: Vec<_> = columns.iter().map(|column| column.literal(number, random)).collect();
            // An order keeps its market and party.
            if let ("orders", Some(id)) = (table.as_str(), place("id")) {
                let seed =
                    values[id].bytes().fold(0_u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
                for own in ["market_id", "party_id"].into_iter().filter_map(place) {
                    values[own] = columns[own].literal(number, &mut SmallRng::seed_from_u64(seed));
                }
            }
            values
        };
        let values: Vec<String> =
            (0..rows).map(row).map(|values| format!("({})", values.join(", "))).collect();
        for some in values.chunks(11) {
            let (names, some) = (names.join(", "), some.join(", "));
            let statement = format!("INSERT INTO {table} ({names}) VALUES {some} ON CONFLICT DO NOTHING");
            client.batch_execute(&statement).await.unwrap_or_else(|error| panic!("{error:?}: {statement}"));
        }
    }
}

impl Column {
    /// A random value for the row of this number, as a literal of SQL.
    fn literal(&self, row: usize, random: &mut SmallRng) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        if self.is_nullable && random.random_bool(0.2) {
            return "NULL".to_owned();
        }
        match (self.kind.as_str(), self.name.as_str()) {
            // Ids that other tables refer to.
            ("text", "id" | "account_id" | "market") => format!("'{:064x}'", random.random_range(0..60)),
            ("text", _) => quoted(text(random)),
            ("bigint", "seq_num") => row.to_string(),
            ("bigint", _) => [0, 1, 2, 3, 300, LARGE].choose(random).unwrap().to_string(),
            ("integer", _) => random.random_range(-2..20).to_string(),
            ("smallint", _) => random.random_range(0..5).to_string(),
            ("numeric", _) if self.is_domain => {
                ["0", "1", "7", "123456789012345678901234567"].choose(random).unwrap().to_string()
            }
            ("numeric", _) => ["0", "-8.5", "7.4900", "9.5", "123456789012345678901234567.5"]
                .choose(random)
                .unwrap()
                .to_string(),
            ("double precision", _) => "0.5".to_owned(),
            ("boolean", _) => random.random::<bool>().to_string(),
            ("timestamp with time zone", "block_time") => time(random.random_range(0..24) * 37_000_000),
            ("timestamp with time zone", _) => {
                let us = *[0, 1, 999_999].choose(random).unwrap();
                time(random.random_range(0..400) * 37_000_000 + us)
            }
            ("text[]", _) => {
                let keys = ["abc", "kéy", "xyz"].into_iter().filter(|_| random.random());
                format!("ARRAY[{}]::text[]", keys.map(quoted).collect::<Vec<_>>().join(", "))
            }
            ("jsonb", _) => quoted(&document(random)),
            (_, _) => quoted(self.labels.choose(random).unwrap()),
        }
    }
}

fn text(random: &mut SmallRng) -> &'static str {
    let texts: &[&str] = if random.random() { &IDS } else { &TEXTS };
    texts.choose(random).unwrap()
}

fn time(us: i64) -> String {
    format!("to_timestamp(0) + {} * interval '1 us'", START_US + us)
}

/// A JSON value that has what readers of any column look for.
fn document(random: &mut SmallRng) -> String {
    let [name, asset] = [(); 2].map(|()| text(random));
    let product = json!({ "settlementAsset": asset, "quoteName": "Q" });
    let instrument = json!({ "code": "code", "name": name, "future": product });
    json!({ "instrument": instrument, "open": random.random_range(-1..2) * LARGE }).to_string()
}
