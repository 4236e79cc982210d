//! ListDeposits: the latest version of each deposit, by party, asset and status.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, PastSource, ReadError, RowReader, Value};
use proto_msgs::{
    numbers::list_deposits::DEPOSITS as FAILED,
    v2::{Deposit, ListDepositsRequest, deposit::Status},
};

use crate::paging::{PagedList, chosen};

/// Deposits by the time of their creation. There is an index for each filter.
pub static DEPOSITS: List = List {
    name: "deposit",
    table: "deposits_current",
    key: &[KeyKind::Time.column("created_timestamp"), KeyKind::Text.column("id")],
    columns: &[
        "party_id", "asset", "coalesce(amount, 0)::text AS amount", "status::text AS status",
        "foreign_tx_hash", "credited_timestamp",
    ],
    filters: &[Filter::Equal("party_id"), Filter::Equal("asset"), Filter::Equal("status")],
    indexed: &["party_id", "asset", "status"],
    past: &[PastSource {
        by: &[],
        of_version: &["status"],
        sql: include_str!("../../sql/past/list_deposits.sql"),
    }],
    ..List::PLAIN
};

impl PagedList for ListDepositsRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &DEPOSITS;

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        let status = chosen(self.status(), Status::as_str_name);
        Ok(vec![self.party_id.map(Value::Text), self.asset_id.map(Value::Text), status])
    }

    fn node(row: &RowReader<'_>) -> Result<Deposit, ReadError> {
        Ok(Deposit {
            id: row.get("id")?,
            party_id: row.get("party_id")?,
            asset: row.get("asset")?,
            amount: row.whole("amount")?.unwrap_or_default(),
            status: row.named("status", Status::from_str_name)?.into(),
            foreign_tx_hash: row.get("foreign_tx_hash")?,
            created_timestamp: row.ns("created_timestamp")?,
            credited_timestamp: row.ns("credited_timestamp")?,
        })
    }
}
