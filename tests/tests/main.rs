//! Integration tests of the mesh in one binary: all tests share the fixture meshes and the servers and run in
//! parallel. `cargo test --workspace --test integration paging::` runs one subject.

#![allow(clippy::unwrap_used)] // in what the tests share

mod a_minute_of_silence;
mod access_log;
mod bus;
mod cache_consistency;
mod cases;
mod chain_height;
mod console;
mod deep_pages;
mod errors;
mod exports;
mod grpc;
mod guide;
mod http_hardening;
mod json;
mod judges;
mod keys;
mod lifecycle;
mod limits;
mod list_statements;
mod manifests;
mod openapi;
mod paging;
mod past;
mod plain_words;
mod proxies;
mod recorded_network;
mod request_fuzzing;
mod telemetry;
mod tls;
mod transactions;
mod watch;
