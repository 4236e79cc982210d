//! The mesh from outside, in one program: tests of all subjects share the fixture meshes and the servers, and
//! while one waits others run. `cargo test --workspace --test integration paging::` runs one subject.

#![allow(clippy::unwrap_used)] // in what the tests share

mod access_log;
mod bus;
mod cases;
mod chain_height;
mod console;
mod deep_pages;
mod errors;
mod exports;
mod grpc;
mod http_hardening;
mod json;
mod lifecycle;
mod limits;
mod manifests;
mod openapi;
mod paging;
mod recorded_network;
mod request_fuzzing;
mod telemetry;
mod transactions;
mod upgrades;
