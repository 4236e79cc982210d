//! GetWithdrawal: one withdrawal by its id.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{ReadError, Row, TimeUs, head_of};
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

    fn handle(
        &mut self,
        Ask(request, scope): Ask<GetWithdrawalRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let store = self.store.clone();
        scope.run(async move {
            let failed = |error: ReadError| error.problem(WITHDRAWAL);
            let row = store
                .point(include_str!("../../sql/get_withdrawal.sql"), &[&request.id])
                .await
                .map_err(failed)?;
            let withdrawal = withdrawal(&row).map_err(failed)?;
            let withdrawal = withdrawal
                .ok_or_else(|| Problem::not_found(WITHDRAWAL, "no such withdrawal").with_inner(request.id))?;
            let head = head_of(&row).map_err(failed)?;
            Ok(Answer::at(head, GetWithdrawalReply { withdrawal: Some(withdrawal) }))
        })
    }
}

fn withdrawal(row: &Row) -> Result<Option<Withdrawal>, ReadError> {
    let Some(id) = row.try_get::<_, Option<String>>("id")? else { return Ok(None) };
    let status: &str = row.try_get("status")?;
    Ok(Some(Withdrawal {
        id,
        party_id: row.try_get("party_id")?,
        amount: row.try_get::<_, Option<String>>("amount")?.unwrap_or_else(|| "0".to_owned()),
        asset: row.try_get("asset")?,
        status: Status::from_str_name(status).unwrap_or_default().into(),
        r#ref: row.try_get("ref")?,
        tx_hash: row.try_get("foreign_tx_hash")?,
        created_timestamp: row.try_get::<_, TimeUs>("created_timestamp")?.ns(),
        withdrawn_timestamp: row.try_get::<_, TimeUs>("withdrawn_timestamp")?.ns(),
        ext: Some(ext(&row.try_get("ext")?)),
    }))
}

/// `{"erc20":{"receiverAddress":"0x…"}}` or anything else, which is shown as `{}` (DATA_MODEL 3.1).
fn ext(stored: &Value) -> WithdrawExt {
    let receiver = stored.pointer("/erc20/receiverAddress").and_then(Value::as_str);
    let erc20 =
        |address: &str| withdraw_ext::Ext::Erc20(Erc20WithdrawExt { receiver_address: address.to_owned() });
    WithdrawExt { ext: receiver.map(erc20) }
}
