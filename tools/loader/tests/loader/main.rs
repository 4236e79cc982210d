//! Migrations, users, loads and imports on real PostgreSQL servers.

#![allow(clippy::unwrap_used)] // in what the tests share

mod import;
mod load;
mod migrate;
mod roles;

/// The text that a query returns.
async fn text(client: &tokio_postgres::Client, query: &str) -> String {
    client.query_one(query, &[]).await.unwrap().get(0)
}
