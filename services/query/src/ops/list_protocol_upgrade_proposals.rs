//! ListProtocolUpgradeProposals: the latest state of each proposal, by status and approver.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, PastSource, ReadError, RowReader, Value};
use proto_msgs::{
    numbers::list_protocol_upgrade_proposals::PROPOSALS as FAILED,
    v2::{
        ListProtocolUpgradeProposalsRequest, ProtocolUpgradeProposal, ProtocolUpgradeProposalStatus as Status,
    },
};

use crate::paging::{PagedList, chosen};

/// Proposals in the order of the primary key. A network has few of them, so filters are applied along the walk.
pub static PROPOSALS: List = List {
    name: "pup",
    table: "protocol_upgrade_proposals_current",
    key: &[KeyKind::Integer.column("upgrade_block_height"), KeyKind::Text.column("network_release_tag")],
    // An array of several dimensions becomes one.
    columns: &["ARRAY(SELECT unnest(approvers)) AS approvers", "status::text AS status"],
    filters: &[
        Filter::Matches("status = $::text::protocol_upgrade_proposal_status"),
        Filter::Matches("approvers @> ARRAY[$::text]"),
    ],
    past: &[PastSource::new(include_str!("../../sql/past/list_protocol_upgrade_proposals.sql"))],
    ..List::PLAIN
};

impl PagedList for ListProtocolUpgradeProposalsRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &PROPOSALS;

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        let status = chosen(self.status(), Status::as_str_name);
        let approver = self.approved_by.filter(|key| !key.is_empty()).map(|key| stored_key(&key));
        Ok(vec![status, approver.map(Value::Text)])
    }

    fn node(row: &RowReader<'_>) -> Result<ProtocolUpgradeProposal, ReadError> {
        Ok(ProtocolUpgradeProposal {
            upgrade_block_height: row.unsigned("upgrade_block_height")?,
            network_release_tag: row.get("network_release_tag")?,
            approvers: row.texts("approvers")?,
            status: row.named("status", Status::from_str_name)?.into(),
        })
    }
}

/// The stored form of an approver's key: lower case. PostgreSQL accepts no NUL in a text, so NUL is replaced
/// by U+FFFD, which is in no stored key either.
fn stored_key(given: &str) -> String {
    given.to_lowercase().replace('\0', "\u{fffd}")
}
