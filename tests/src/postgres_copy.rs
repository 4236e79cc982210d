//! The CSV that PostgreSQL itself prints for the exportable tables: the expected text of downloads.

#![allow(clippy::unwrap_used)] // in what the tests share

use futures_util::TryStreamExt;
use mesh_testbed::{Database, primary_key};
use proto_msgs::v2::Table;
use tokio_postgres::Client;

/// The tables and numbers that existing clients send (API 4.1), independent of the code under test. Numbers
/// never change; a later table need not be here.
pub const TABLE_NUMBERS: [(i32, &str); 15] = [
    (1, "balances"),
    (2, "checkpoints"),
    (3, "delegations"),
    (4, "ledger"),
    (5, "orders"),
    (6, "trades"),
    (7, "market_data"),
    (8, "margin_levels"),
    (9, "positions"),
    (10, "liquidity_provisions"),
    (11, "markets"),
    (12, "deposits"),
    (13, "withdrawals"),
    (14, "blocks"),
    (15, "rewards"),
];

/// The exportable tables: name of the enum value, name of the table.
pub fn tables() -> Vec<(&'static str, String)> {
    Table::exportable().into_iter().map(|table| (table.as_str_name(), table.relation())).collect()
}

/// A database session that runs COPY.
#[derive(Debug)]
pub struct Copier(Client);

impl Copier {
    /// Opens a session on a database, with time zone UTC.
    pub async fn open(database: &Database) -> Self {
        let client = database.connect().await;
        client.batch_execute("SET TimeZone = 'UTC'").await.unwrap();
        Self(client)
    }

    /// The rows of a query as CSV with a header.
    pub async fn query(&self, query: &str) -> Vec<u8> {
        let copied =
            self.0.copy_out(&format!("COPY ({query}) TO STDOUT (FORMAT csv, HEADER)")).await.unwrap();
        let rows: Vec<_> = copied.try_collect().await.unwrap();
        rows.concat()
    }

    /// A table's rows as CSV with one header: span of heights after span, each in order of the primary key.
    pub async fn spans(&self, table: &str, spans: &[(u64, u64)]) -> Vec<u8> {
        let order = primary_key(&self.0, table).await;
        let header = self.query(&format!("SELECT * FROM {table} LIMIT 0")).await;
        let mut text = header.clone();
        for (from, to) in spans {
            let time = |which| {
                format!("(SELECT {which}(block_time) FROM blocks WHERE height BETWEEN {from} AND {to})")
            };
            let (first, last) = (time("min"), time("max"));
            let rows =
                format!("SELECT * FROM {table} WHERE block_time BETWEEN {first} AND {last} ORDER BY {order}");
            let rows = self.query(&rows).await;
            text.extend(rows.strip_prefix(&header[..]).unwrap());
        }
        text
    }
}
