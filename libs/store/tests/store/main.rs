//! The store against real PostgreSQL servers: schema and migrations, writers' tools, readers.

#![allow(clippy::unwrap_used)] // in what the tests share

mod candles;
mod current_tables;
mod dictionary;
mod import;
mod load;
mod migrate;
mod reading;
mod roles;
mod schema;
mod tls;

/// The text that a query returns.
async fn text(client: &tokio_postgres::Client, query: &str) -> String {
    client.query_one(query, &[]).await.unwrap().get(0)
}
