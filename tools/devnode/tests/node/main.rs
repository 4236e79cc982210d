//! The development node seen from outside, over raw HTTP.
#![allow(clippy::unwrap_used)]

mod broadcasting;
mod calls;
mod refusals;
mod restarts;
mod stage;
mod subscriptions;
