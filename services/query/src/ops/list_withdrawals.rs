//! ListWithdrawals: the latest version of each withdrawal, by party, asset and status.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, PastSource, ReadError, RowReader, Value};
use proto_msgs::{
    numbers::list_withdrawals::WITHDRAWALS as FAILED,
    v2::{ListWithdrawalsRequest, Withdrawal, withdrawal::Status},
};

use super::get_withdrawal::withdrawal;
use crate::paging::{PagedList, chosen};

/// Withdrawals by the time of their creation. There is an index for each filter.
pub static WITHDRAWALS: List = List {
    name: "withdrawal",
    table: "withdrawals_current",
    key: &[KeyKind::Time.column("created_timestamp"), KeyKind::Text.column("id")],
    columns: &[
        "party_id", "trim_scale(amount)::text AS amount", "asset", "status::text AS status", "ref",
        "foreign_tx_hash", "withdrawn_timestamp", "ext",
    ],
    filters: &[Filter::Equal("party_id"), Filter::Equal("asset"), Filter::Equal("status")],
    indexed: &["party_id", "asset", "status"],
    past: &[PastSource {
        by: &[],
        of_version: &["status"],
        sql: include_str!("../../sql/past/list_withdrawals.sql"),
    }],
    ..List::PLAIN
};

impl PagedList for ListWithdrawalsRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &WITHDRAWALS;

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        let status = chosen(self.status(), Status::as_str_name);
        Ok(vec![self.party_id.map(Value::Text), self.asset_id.map(Value::Text), status])
    }

    fn node(row: &RowReader<'_>) -> Result<Withdrawal, ReadError> {
        withdrawal(row)
    }
}
