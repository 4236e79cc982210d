//! The development node seen from outside, over raw HTTP.

mod broadcasting;
mod calls;
mod fixture;
mod refusals;
mod restarts;
mod subscriptions;
