//! ListAccounts: all accounts that match the filters, with their balances, unpaged.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::{Code, Problem};
use mesh_store::{ReadError, Row, head_of};
use proto_msgs::{
    numbers::list_accounts::ACCOUNTS,
    v2::{AccountBalance, AccountType, ListAccountsReply, ListAccountsRequest},
};

use crate::Query;

impl Handler<Ask<ListAccountsRequest>> for Query {
    type Result = AnswerFuture<ListAccountsReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<ListAccountsRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (store, max_accounts) = (self.store.clone(), self.max_accounts);
        scope.run(async move {
            let failed = |error: ReadError| error.problem(ACCOUNTS);
            let one_more = i64::try_from(max_accounts).unwrap_or(i64::MAX - 1) + 1;
            let sql = include_str!("../../sql/list_accounts.sql");
            let rows =
                store.list(sql, &[&request.party, &request.market, &one_more]).await.map_err(failed)?;
            if rows.len() > max_accounts {
                let problem =
                    Problem::new(Code::FailedPrecondition, ACCOUNTS, "too many accounts, ask with a filter");
                return Err(problem.with_inner(format!("more than {max_accounts}")));
            }
            let head = rows.first().map_or(Ok(None), head_of).map_err(failed)?;
            let accounts = rows.iter().filter_map(|row| account(row).transpose()).collect::<Result<_, _>>();
            Ok(Answer::at(head, ListAccountsReply { accounts: accounts.map_err(failed)? }))
        })
    }
}

fn account(row: &Row) -> Result<Option<AccountBalance>, ReadError> {
    let Some(party) = row.try_get::<_, Option<String>>("party")? else { return Ok(None) };
    let number: i32 = row.try_get("type")?;
    let kind = AccountType::try_from(number).unwrap_or_else(|_| {
        tracing::warn!(number, "an account has a type that the contract does not know");
        AccountType::Unspecified
    });
    Ok(Some(AccountBalance {
        party,
        market: row.try_get("market")?,
        balance: row.try_get("balance")?,
        asset: row.try_get("asset")?,
        r#type: kind.into(),
    }))
}
