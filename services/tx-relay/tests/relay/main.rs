//! The relay before a consensus node: one fate for every transaction, whatever the node does. What both nodes
//! can be brought to is tried with both, and nothing else is different in it.
#![allow(clippy::unwrap_used)]

mod accepted;
mod refused;
mod repeated;
mod stage;
mod unknown;
