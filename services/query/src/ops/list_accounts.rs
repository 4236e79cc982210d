//! ListAccounts: all accounts that match the filters, with their balances, unpaged.

use std::sync::LazyLock;

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::{Code, Problem};
use mesh_store::{Parameter, ReadError, Row, head_of};
use proto_msgs::{
    numbers::list_accounts::ACCOUNTS,
    v2::{AccountBalance, AccountType, ListAccountsReply, ListAccountsRequest},
};

use crate::Query;

/// The party of the network's own accounts, which come first (contract 4.3).
const NETWORK: &str = "network";

/// The statement for each combination of filters.
static STATEMENTS: LazyLock<Statements> = LazyLock::new(|| {
    let with = |filters| include_str!("../../sql/list_accounts.sql").replace("{filters}", filters);
    Statements {
        all: with(""),
        party: with("WHERE party_id = $2"),
        market: with("WHERE market_id = $2"),
        both: with("WHERE party_id = $2 AND market_id = $3"),
    }
});

struct Statements {
    all: String,
    party: String,
    market: String,
    both: String,
}

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
            let mut parameters: Vec<Parameter<'_>> = vec![&one_more];
            parameters.extend(request.party.as_ref().map(|party| party as Parameter<'_>));
            parameters.extend(request.market.as_ref().map(|market| market as Parameter<'_>));
            let sql = match (&request.party, &request.market) {
                (None, None) => &STATEMENTS.all,
                (Some(_), None) => &STATEMENTS.party,
                (None, Some(_)) => &STATEMENTS.market,
                (Some(_), Some(_)) => &STATEMENTS.both,
            };
            let rows = store.list("account", sql, &parameters).await.map_err(failed)?;
            if rows.len() > max_accounts {
                let problem =
                    Problem::new(Code::FailedPrecondition, ACCOUNTS, "too many accounts, ask with a filter");
                return Err(problem.with_inner(format!("more than {max_accounts}")));
            }
            let head = rows.first().map_or(Ok(None), head_of).map_err(failed)?;
            let accounts = rows.iter().filter_map(|row| account(row).transpose());
            let mut accounts = accounts.collect::<Result<Vec<_>, _>>().map_err(failed)?;
            accounts.sort_unstable_by(|one, other| order(one).cmp(&order(other)));
            Ok(Answer::at(head, ListAccountsReply { accounts }))
        })
    }
}

/// The network's accounts first, then by party, market, asset and type.
fn order(account: &AccountBalance) -> (bool, &str, &str, &str, i32) {
    let AccountBalance { party, market, asset, r#type, .. } = account;
    (party != NETWORK, party, market, asset, *r#type)
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
