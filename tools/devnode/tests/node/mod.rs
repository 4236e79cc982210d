//! The development node seen from outside, over raw HTTP.

mod broadcasting;
mod calls;
pub(crate) mod demo;
mod fixture;
mod refusals;
mod subscriptions;
