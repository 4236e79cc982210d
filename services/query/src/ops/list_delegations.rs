//! ListDelegations: the latest amount per party, node and epoch.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, PastSource, ReadError, RowReader, Value};
use proto_msgs::{
    numbers::list_delegations::DELEGATIONS as FAILED,
    v2::{Delegation, ListDelegationsRequest},
};

use crate::paging::PagedList;

/// Delegations by epoch. There is an index for each filter.
pub static DELEGATIONS: List = List {
    name: "delegation",
    table: "delegations_current",
    key: &[
        KeyKind::Integer.column("epoch_id"),
        KeyKind::Text.column("party_id"),
        KeyKind::Text.column("node_id"),
    ],
    columns: &["coalesce(amount, 0)::text AS amount"],
    filters: &[
        Filter::Equal("party_id"),
        Filter::Equal("node_id"),
        Filter::Equal("epoch_id"),
        Filter::AtMost,
    ],
    indexed: &["party_id", "node_id"],
    plainly_indexed: &[&["party_id", "node_id"]],
    past: &[PastSource::new(include_str!("../../sql/past/list_delegations.sql"))],
    past_bound: Some(|past| Value::Integer(past.delegation_epoch)),
    ..List::PLAIN
};

impl PagedList for ListDelegationsRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &DELEGATIONS;

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        Ok(vec![
            self.party_id.map(Value::Text),
            self.node_id.map(Value::Text),
            self.epoch_id.map(Value::Integer),
            None,
        ])
    }

    fn node(row: &RowReader<'_>) -> Result<Delegation, ReadError> {
        Ok(Delegation {
            party: row.get("party_id")?,
            node_id: row.get("node_id")?,
            amount: row.whole("amount")?.unwrap_or_default(),
            epoch_seq: row.get::<i64>("epoch_id")?.to_string(),
        })
    }
}
