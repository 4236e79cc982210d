//! One file per operation, and the one row that each needs.

mod check_raw_transaction;
mod check_transaction;
mod get_transaction;
mod submit_raw_transaction;
mod submit_transaction;

use actix::Addr;
use bytes::Bytes;
use mesh_bus::{Bus, Limits, Router};
use mesh_chassis::Registry;
use mesh_problem::Problem;
use proto_msgs::v2::{
    CheckRawTransactionRequest, CheckTransactionReply, CheckTransactionRequest, GetTransactionRequest,
    SubmitRawTransactionRequest, SubmitTransactionRequest,
};

use crate::{
    Relay,
    node::{CallError, Nodes},
    peers::RecallTransactions,
};

/// Every operation of the workload.
pub(crate) fn router(bus: Bus, relay: Addr<Relay>, limits: Limits, registry: &mut Registry) -> Router<Relay> {
    Router::new(bus, "tx-relay", relay, limits, registry)
        .on::<CheckRawTransactionRequest>()
        .on::<CheckTransactionRequest>()
        .on::<GetTransactionRequest>()
        .on::<SubmitRawTransactionRequest>()
        .on::<SubmitTransactionRequest>()
        .on_peers::<RecallTransactions>()
}

/// The node's dry check of an encoded transaction.
async fn check(nodes: &Nodes, tx: &Bytes) -> Result<CheckTransactionReply, Problem> {
    let checked = nodes.check(tx).await.map_err(CallError::problem)?;
    Ok(CheckTransactionReply {
        success: checked.result.code == 0,
        code: checked.result.code,
        gas_wanted: checked.gas_wanted,
        gas_used: checked.gas_used,
        data: checked.result.data,
        log: checked.result.log,
        info: checked.info,
    })
}
