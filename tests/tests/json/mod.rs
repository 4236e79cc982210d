//! The JSON and request rules J1-J15 of the contract, each from outside, over the fixture.

mod answers;
mod caching;
mod cross_origin;
mod past;
mod requests;
mod times;
mod transfer;
mod unknown_names;
