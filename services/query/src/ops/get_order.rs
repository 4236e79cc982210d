//! GetOrder: one version of an order.

use std::sync::LazyLock;

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{ReadError, RowReader, block_of};
use proto_msgs::{
    numbers::get_order::ORDER,
    v2::{GetOrderReply, GetOrderRequest},
};

use super::list_orders::{COLUMNS, order};
use crate::Query;

/// The statement with the columns that an order is read from.
static STATEMENT: LazyLock<String> =
    LazyLock::new(|| include_str!("../../sql/get_order.sql").replace("{columns}", &COLUMNS.join(", ")));

impl Handler<Ask<GetOrderRequest>> for Query {
    type Result = AnswerFuture<GetOrderReply>;

    fn handle(&mut self, Ask(request, scope): Ask<GetOrderRequest>, _: &mut Context<Self>) -> Self::Result {
        let store = self.store.clone();
        scope.run(async move {
            let failed = |error: ReadError| error.problem(ORDER);
            // No stored version is greater than the greatest `int4`.
            let version = request.version.map(|version| i64::try_from(version).unwrap_or(i64::MAX));
            let past = store.past(request.at_block, request.chain_id.as_deref(), ORDER).await?;
            let time = past.map(|past| past.time);
            let row = store.point(&STATEMENT, &[&request.order_id, &version, &time], past.as_ref()).await;
            let row = row.map_err(failed)?;
            let stored = RowReader::new(&row, "orders", "id", store.unreadable());
            if stored.get::<Option<&str>>("id").map_err(failed)?.is_none() {
                let reason = match request.version {
                    None => "no such order",
                    Some(_) => "no such version of an order",
                };
                return Err(Problem::not_found(ORDER, reason).with_inner(request.order_id));
            }
            let reply = GetOrderReply { order: Some(order(&stored).map_err(failed)?) };
            let block = block_of(&row, past.as_ref()).map_err(failed)?;
            Ok(Answer::at(block, reply).finally(past.is_some_and(|past| past.is_sealed)))
        })
    }
}
