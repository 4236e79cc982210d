//! One file per operation, and the one row that each needs.

mod check_raw_transaction;
mod check_transaction;
mod get_transaction;
mod submit_raw_transaction;
mod submit_transaction;

use actix::Addr;
use mesh_bus::{Bus, Limits, Router};
use mesh_chassis::Registry;
use proto_msgs::v2::{
    CheckRawTransactionRequest, CheckTransactionRequest, GetTransactionRequest, SubmitRawTransactionRequest,
    SubmitTransactionRequest,
};

use crate::{Relay, WORKLOAD, peers::RecallTransactions};

/// Every operation of the workload.
pub(crate) fn router(bus: Bus, relay: Addr<Relay>, limits: Limits, registry: &mut Registry) -> Router<Relay> {
    Router::new(bus, WORKLOAD, relay, limits, registry)
        .on::<CheckRawTransactionRequest>()
        .on::<CheckTransactionRequest>()
        .on::<GetTransactionRequest>()
        .on::<SubmitRawTransactionRequest>()
        .on::<SubmitTransactionRequest>()
        .on_peers::<RecallTransactions>()
}
