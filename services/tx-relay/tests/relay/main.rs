//! The relay with a consensus node: one outcome for every transaction. Cases that both the development node and
//! CometBFT can produce run against both.
#![allow(clippy::unwrap_used)]

mod accepted;
mod fixture;
mod node_errors;
mod refused;
mod repeated;
mod replicas;
mod unknown;
