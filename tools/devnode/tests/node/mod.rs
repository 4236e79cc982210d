//! The development node seen from outside, over raw HTTP.

mod broadcasting;
mod calls;
mod refusals;
mod restarts;
mod stage;
mod subscriptions;
