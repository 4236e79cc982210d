//! The store against real PostgreSQL servers: schema and readers.

#![allow(clippy::unwrap_used)] // in what the tests share

mod candles;
mod current_tables;
mod dictionary;
mod reading;
mod schema;
mod tls;
