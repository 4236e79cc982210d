//! ListAccounts: the accounts that match the filters with their balances, all of them or a page.

use std::sync::LazyLock;

use mesh_bus::{Answer, AnswerResult, Format, offload};
use mesh_problem::{Code, Problem};
use mesh_store::{Filter, KeyKind, List, Parameter, ReadError, Row, RowReader, Store, Value, head_of};
use prost::Message;
use proto_msgs::{
    numbers::list_accounts::ACCOUNTS as FAILED,
    v2::{AccountBalance, AccountType, ListAccountsReply, ListAccountsRequest, PageInfo, Pagination},
};

use crate::{
    Query,
    paging::{INLINE_ROWS, MAX_BYTES, PagedList, Unpaged},
};

/// The party of the network's own accounts, which come first (contract 4.3).
const NETWORK: &str = "network";

/// Accounts by party, `network` first, market, asset and type. There is an index for pages of all and of a party, and
/// one for those of a market.
pub static ACCOUNTS: List = List {
    name: "account",
    table: "accounts_with_balances",
    key: &[
        KeyKind::Party.column("party_order"),
        KeyKind::Text.column("market"),
        KeyKind::Text.column("asset"),
        KeyKind::Integer.column("type_number"),
    ],
    columns: &["party", "type_number::int4 AS type", "balance::text AS balance"],
    is_grouped: false,
    filters: &[Filter::Equal("party_order"), Filter::Equal("market")],
    indexed: &["market"],
    plainly_indexed: &[],
};

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

impl PagedList for ListAccountsRequest {
    type Node = AccountBalance;

    const FAILED: u32 = FAILED;
    const LIST: &'static List = &ACCOUNTS;
    // There are no newest accounts.
    const HAS_FIXED_ORDER: bool = true;

    fn pagination(&self) -> Option<&Pagination> {
        self.pagination.as_ref()
    }

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        Ok(vec![self.party.map(|party| Value::party(&party)), self.market.map(Value::Text)])
    }

    fn node(row: &RowReader<'_>) -> Result<AccountBalance, ReadError> {
        Ok(AccountBalance {
            party: row.get("party")?,
            market: row.get("market")?,
            balance: row.whole("balance")?.unwrap_or_default(),
            asset: row.get("asset")?,
            r#type: row.numbered::<AccountType>("type")?.into(),
        })
    }

    fn reply(nodes: Vec<(AccountBalance, String)>, page_info: Option<PageInfo>) -> ListAccountsReply {
        ListAccountsReply { accounts: nodes.into_iter().map(|(node, _)| node).collect(), page_info }
    }

    fn unpaged(&self, query: &Query, format: Format) -> Option<Unpaged<ListAccountsReply>> {
        if self.pagination.is_some() {
            return None;
        }
        let (store, most) = (query.store.clone(), query.max_accounts);
        Some(Box::pin(all(store, most, self.party.clone(), self.market.clone(), format)))
    }
}

/// All accounts; refused when there are more than `most`, and when a client of gRPC could not take them.
async fn all(
    store: Store,
    most: usize,
    party: Option<String>,
    market: Option<String>,
    format: Format,
) -> AnswerResult<ListAccountsReply> {
    let failed = |error: ReadError| error.problem(FAILED);
    let one_more = i64::try_from(most).unwrap_or(i64::MAX - 1) + 1;
    let mut parameters: Vec<Parameter<'_>> = vec![&one_more];
    parameters.extend(party.as_ref().map(|party| party as Parameter<'_>));
    parameters.extend(market.as_ref().map(|market| market as Parameter<'_>));
    let sql = match (&party, &market) {
        (None, None) => &STATEMENTS.all,
        (Some(_), None) => &STATEMENTS.party,
        (None, Some(_)) => &STATEMENTS.market,
        (Some(_), Some(_)) => &STATEMENTS.both,
    };
    let rows = store.list(ACCOUNTS.name, sql, &parameters).await.map_err(failed)?;
    if rows.len() > most {
        return Err(too_many(format!("more than {most}")));
    }
    offload(rows.len() > INLINE_ROWS, move || answer(&store, &rows, format)).await
}

fn answer(store: &Store, rows: &[Row], format: Format) -> AnswerResult<ListAccountsReply> {
    let failed = |error: ReadError| error.problem(FAILED);
    let head = rows.first().map_or(Ok(None), head_of).map_err(failed)?;
    let mut accounts = Vec::with_capacity(rows.len());
    for row in rows {
        let row = RowReader::new(row, "accounts", "id", store.unreadable());
        // The one row of a store without accounts has none.
        if row.get::<Option<&str>>("party").map_err(failed)?.is_some() {
            let number: i32 = row.get("type").map_err(failed)?;
            accounts.push((number, ListAccountsRequest::node(&row).map_err(failed)?));
        }
    }
    accounts.sort_unstable_by(|(one_type, one), (other_type, other)| {
        order(one, *one_type).cmp(&order(other, *other_type))
    });
    let accounts = accounts.into_iter().map(|(_, account)| account).collect();
    let reply = ListAccountsReply { accounts, page_info: None };
    if format == Format::Protobuf && reply.encoded_len() > MAX_BYTES {
        return Err(too_many(format!("{} bytes", reply.encoded_len())));
    }
    Ok(Answer::at(head, reply))
}

/// The network's accounts first, then by party, market, asset and the stored number of the type.
fn order(account: &AccountBalance, number: i32) -> (bool, &str, &str, &str, i32) {
    let AccountBalance { party, market, asset, .. } = account;
    (party != NETWORK, party, market, asset, number)
}

fn too_many(inner: String) -> Problem {
    let reason = "too many accounts for one answer, ask with a filter or for pages";
    Problem::new(Code::FailedPrecondition, FAILED, reason).with_inner(inner)
}
