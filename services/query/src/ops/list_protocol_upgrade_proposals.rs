//! ListProtocolUpgradeProposals: the latest state of each proposal, by status and approver.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_store::{Filter, KeyKind, List, ReadError, Row, Value};
use proto_msgs::{
    numbers::list_protocol_upgrade_proposals::PROPOSALS as FAILED,
    v2::{
        ListProtocolUpgradeProposalsReply, ListProtocolUpgradeProposalsRequest, ProtocolUpgradeProposal,
        ProtocolUpgradeProposalEdge, ProtocolUpgradeProposalPage, ProtocolUpgradeProposalStatus as Status,
    },
};

use crate::{Query, paging};

/// Proposals in the order of the primary key. A network has few of them, so filters are applied along the walk.
pub static PROPOSALS: List = List {
    name: "pup",
    table: "protocol_upgrade_proposals_current",
    key: &[KeyKind::Integer.column("upgrade_block_height"), KeyKind::Text.column("network_release_tag")],
    columns: &["approvers", "status::text AS status"],
    is_grouped: false,
    filters: &[
        Filter::Matches("status = $::text::protocol_upgrade_proposal_status"),
        Filter::Matches("approvers @> ARRAY[$::text]"),
    ],
    own_indexes: &[],
};

impl Handler<Ask<ListProtocolUpgradeProposalsRequest>> for Query {
    type Result = AnswerFuture<ListProtocolUpgradeProposalsReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<ListProtocolUpgradeProposalsRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let window = paging::window(&PROPOSALS, request.pagination.as_ref(), sizes)?;
            let status = match request.status() {
                Status::Unspecified => None,
                status => Some(status.as_str_name().to_owned()),
            };
            let approver = request.approved_by.filter(|key| !key.is_empty()).map(|key| stored_key(&key));
            let filters = vec![status.map(Value::Text), approver.map(Value::Text)];
            let page = paging::read(&store, &PROPOSALS, &window, filters, proposal).await;
            let page = page.map_err(|error| error.problem(FAILED))?;
            let edge = |(node, cursor)| ProtocolUpgradeProposalEdge { node: Some(node), cursor };
            let edges = page.edges.into_iter().map(edge).collect();
            let proposals = Some(ProtocolUpgradeProposalPage { edges, page_info: Some(page.info) });
            let reply = ListProtocolUpgradeProposalsReply { protocol_upgrade_proposals: proposals };
            Ok(Answer::at(page.head, reply))
        })
    }
}

/// The stored form of an approver's key: lower case. PostgreSQL accepts no NUL in a text, so NUL is replaced
/// by U+FFFD, which is in no stored key either.
fn stored_key(given: &str) -> String {
    given.to_lowercase().replace('\0', "\u{fffd}")
}

fn proposal(row: &Row) -> Result<ProtocolUpgradeProposal, ReadError> {
    let (height, status): (i64, &str) = (row.try_get("upgrade_block_height")?, row.try_get("status")?);
    Ok(ProtocolUpgradeProposal {
        upgrade_block_height: u64::try_from(height)
            .map_err(|_| ReadError::Unreadable(format!("upgrade_block_height {height}")))?,
        network_release_tag: row.try_get("network_release_tag")?,
        approvers: row.try_get("approvers")?,
        status: Status::from_str_name(status).unwrap_or_default().into(),
    })
}
