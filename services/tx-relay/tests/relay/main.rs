//! The relay before a development node: one fate for every transaction, whatever the node does.
#![allow(clippy::unwrap_used)]

mod accepted;
mod refused;
mod repeated;
mod stage;
mod unknown;
