//! GetWithdrawal: one withdrawal by its id.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{ReadError, RowReader, block_of};
use proto_msgs::{
    numbers::get_withdrawal::WITHDRAWAL,
    v2::{
        Erc20WithdrawExt, GetWithdrawalReply, GetWithdrawalRequest, WithdrawExt, Withdrawal, withdraw_ext,
        withdrawal::Status,
    },
};
use serde_json::Value;

use crate::Query;

impl Handler<Ask<GetWithdrawalRequest>> for Query {
    type Result = AnswerFuture<GetWithdrawalReply>;

    fn handle(&mut self, ask: Ask<GetWithdrawalRequest>, _: &mut Context<Self>) -> Self::Result {
        let Ask(request, scope) = ask;
        let store = self.store.clone();
        scope.run(async move {
            let failed = |error: ReadError| error.problem(WITHDRAWAL);
            let past = store.past(request.at_block, request.chain_id.as_deref(), WITHDRAWAL).await?;
            let time = past.map(|past| past.time);
            let sql = include_str!("../../sql/get_withdrawal.sql");
            let row = store.point(sql, &[&request.id, &time], past.as_ref()).await.map_err(failed)?;
            let stored = RowReader::new(&row, "withdrawals", "id", store.unreadable());
            if stored.get::<Option<&str>>("id").map_err(failed)?.is_none() {
                return Err(Problem::not_found(WITHDRAWAL, "no such withdrawal").with_inner(request.id));
            }
            let withdrawal = withdrawal(&stored).map_err(failed)?;
            let block = block_of(&row, past.as_ref()).map_err(failed)?;
            let reply = GetWithdrawalReply { withdrawal: Some(withdrawal) };
            Ok(Answer::at(block, reply).finally(past.is_some_and(|past| past.is_sealed)))
        })
    }
}

/// Reads a withdrawal from a row with its columns.
pub(super) fn withdrawal(row: &RowReader<'_>) -> Result<Withdrawal, ReadError> {
    Ok(Withdrawal {
        id: row.get("id")?,
        party_id: row.get("party_id")?,
        amount: row.whole("amount")?.unwrap_or_else(|| "0".to_owned()),
        asset: row.get("asset")?,
        status: row.named("status", Status::from_str_name)?.into(),
        r#ref: row.get("ref")?,
        tx_hash: row.get("foreign_tx_hash")?,
        created_timestamp: row.ns("created_timestamp")?,
        withdrawn_timestamp: row.ns("withdrawn_timestamp")?,
        ext: Some(ext(row)?),
    })
}

/// `{"erc20":{"receiverAddress":"0x…"}}`, or `{}` (DATA_MODEL 3.1).
fn ext(row: &RowReader<'_>) -> Result<WithdrawExt, ReadError> {
    let stored = row.json("ext")?.unwrap_or_default();
    let receiver = stored.pointer("/erc20/receiverAddress").and_then(Value::as_str);
    if receiver.is_none() && stored.as_object().is_none_or(|ext| !ext.is_empty()) {
        row.note("ext", &stored);
    }
    let erc20 =
        |address: &str| withdraw_ext::Ext::Erc20(Erc20WithdrawExt { receiver_address: address.to_owned() });
    Ok(WithdrawExt { ext: receiver.map(erc20) })
}
