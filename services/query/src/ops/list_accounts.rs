//! ListAccounts: the accounts that match the filters with their balances, all of them or a page.

use std::sync::LazyLock;

use mesh_bus::{Answer, AnswerResult, Format, offload};
use mesh_problem::{Code, Problem};
use mesh_store::{
    Filter, KeyKind, List, Parameter, Past, PastSource, ReadError, Row, RowReader, Store, Value, block_of,
};
use prost::Message;
use proto_msgs::{
    numbers::list_accounts::ACCOUNTS as FAILED,
    v2::{AccountBalance, AccountType, ListAccountsReply, ListAccountsRequest},
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
    filters: &[Filter::Equal("party_order"), Filter::Equal("market")],
    indexed: &["market"],
    past: &[PastSource::new(include_str!("../../sql/past/list_accounts.sql"))],
    ..List::PLAIN
};

/// The statement for each combination of filters (a party, a market), now and as of a block.
static STATEMENTS: LazyLock<[[String; 4]; 2]> = LazyLock::new(|| {
    let filters = [&[][..], &["party_id"], &["market_id"], &["party_id", "market_id"]];
    [filters.map(|columns| statement(columns, false)), filters.map(|columns| statement(columns, true))]
});

fn statement(columns: &[&str], is_past: bool) -> String {
    let mut conditions: Vec<String> =
        columns.iter().zip(2..).map(|(column, number)| format!("{column} = ${number}")).collect();
    let mut balances = "current_balances AS newest ON newest.account_id = accounts.id".to_owned();
    if is_past {
        let at = format!("${}::timestamptz", columns.len() + 2);
        conditions.push(format!("accounts.block_time <= {at}"));
        balances = format!(
            "LATERAL (
        SELECT balance FROM balances
        WHERE balances.account_id = accounts.id AND balances.block_time <= {at}
        ORDER BY balances.block_time DESC LIMIT 1
    ) AS newest ON true"
        );
    }
    let filters = match &*conditions {
        [] => String::new(),
        _ => format!("WHERE {}", conditions.join(" AND ")),
    };
    let sql = include_str!("../../sql/list_accounts.sql").replace("{balances}", &balances);
    sql.replace("{filters}", &filters)
}

impl PagedList for ListAccountsRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &ACCOUNTS;
    // There are no newest accounts.
    const HAS_FIXED_ORDER: bool = true;

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

    fn unpaged(&self, query: &Query, format: Format) -> Option<Unpaged<ListAccountsReply>> {
        if self.pagination.is_some() {
            return None;
        }
        Some(Box::pin(all(query.store.clone(), query.max_accounts, self.clone(), format)))
    }
}

/// All accounts; refused when there are more than `most`, and when a client of gRPC could not take them.
async fn all(
    store: Store,
    most: usize,
    request: ListAccountsRequest,
    format: Format,
) -> AnswerResult<ListAccountsReply> {
    let failed = |error: ReadError| error.problem(FAILED);
    let past = store.past(request.at_block, request.chain_id.as_deref(), FAILED).await?;
    let ListAccountsRequest { party, market, .. } = request;
    let one_more = i64::try_from(most).unwrap_or(i64::MAX - 1) + 1;
    let mut parameters: Vec<Parameter<'_>> = vec![&one_more];
    parameters.extend(party.as_ref().map(|party| party as Parameter<'_>));
    parameters.extend(market.as_ref().map(|market| market as Parameter<'_>));
    parameters.extend(past.as_ref().map(|past| &past.time as Parameter<'_>));
    let filters = usize::from(party.is_some()) + 2 * usize::from(market.is_some());
    let sql = &STATEMENTS[usize::from(past.is_some())][filters];
    let rows = store.list(ACCOUNTS.name, sql, &parameters, past.as_ref()).await.map_err(failed)?;
    if rows.len() > most {
        return Err(too_many(format!("more than {most}")));
    }
    let is_final = past.is_some_and(|past| past.is_sealed);
    let answer = offload(rows.len() > INLINE_ROWS, move || answer(&store, &rows, past, format)).await?;
    Ok(answer.finally(is_final))
}

fn answer(
    store: &Store,
    rows: &[Row],
    past: Option<Past>,
    format: Format,
) -> AnswerResult<ListAccountsReply> {
    let failed = |error: ReadError| error.problem(FAILED);
    let block = rows.first().map_or(Ok(None), |row| block_of(row, past.as_ref())).map_err(failed)?;
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
    Ok(Answer::at(block, reply))
}

/// The network's accounts first, then by party, market, asset and the stored number of the type. Without a party or a
/// market several rows may have one key, so that the balance decides.
fn order(account: &AccountBalance, number: i32) -> (bool, &str, &str, &str, i32, &str) {
    let AccountBalance { party, market, asset, balance, .. } = account;
    (party != NETWORK, party, market, asset, number, balance)
}

fn too_many(inner: String) -> Problem {
    let reason = "too many accounts for one answer, ask with a filter or for pages";
    Problem::new(Code::FailedPrecondition, FAILED, reason).with_inner(inner)
}
