//! A recorded run of a real test network, loaded and requested over HTTP: every answer must equal what these
//! tests compute from the CSV files alone, without SQL and without code of the services. The recording is
//! `../shared/data/smoketest-5000` next to the workspace; without it these tests say so and pass.

mod accounts;
mod assets;
mod candles;
mod check;
mod delegations;
mod difference;
mod downloads;
mod files;
mod ledger;
mod listing;
mod loading;
mod markets;
mod network;
mod oracle_specs;
mod positions;
mod recording;
mod rewards;
mod trades;
mod withdrawals;
