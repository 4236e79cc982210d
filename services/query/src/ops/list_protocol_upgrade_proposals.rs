//! ListProtocolUpgradeProposals: the latest state of each proposal, by status and approver.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_store::{ListKey, ReadError, Row};
use proto_msgs::{
    numbers::list_protocol_upgrade_proposals::PROPOSALS,
    v2::{
        ListProtocolUpgradeProposalsReply, ListProtocolUpgradeProposalsRequest, ProtocolUpgradeProposal,
        ProtocolUpgradeProposalEdge, ProtocolUpgradeProposalPage, ProtocolUpgradeProposalStatus as Status,
    },
};

use crate::{
    Query,
    paging::{frame, page_info, window},
};

/// Sort key of proposals.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    height: i64,
    tag: String,
}

impl ListKey for Key {
    const LIST: &'static str = "pup";

    fn values(&self) -> Vec<String> {
        vec![self.height.to_string(), self.tag.clone()]
    }

    fn from_values(values: &[String]) -> Option<Self> {
        match values {
            [height, tag] => Some(Self { height: height.parse().ok()?, tag: tag.clone() }),
            _ => None,
        }
    }
}

impl Handler<Ask<ListProtocolUpgradeProposalsRequest>> for Query {
    type Result = AnswerFuture<ListProtocolUpgradeProposalsReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<ListProtocolUpgradeProposalsRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let failed = |error: ReadError| error.problem(PROPOSALS);
            let window = window::<Key>(request.pagination.as_ref(), sizes)?;
            let status = match request.status() {
                Status::Unspecified => None,
                status => Some(status.as_str_name()),
            };
            let approver = request.approved_by.filter(|key| !key.is_empty()).map(|key| stored_key(&key));
            let position = window.position();
            let rows = store
                .list(
                    include_str!("../../sql/list_protocol_upgrade_proposals.sql"),
                    &[
                        &status,
                        &approver,
                        &window.descending(),
                        &window.rows(),
                        &position.map(|key| key.height),
                        &position.map(|key| key.tag.as_str()),
                    ],
                )
                .await
                .map_err(failed)?;
            let (head, behind) = frame(&rows).map_err(failed)?;
            let proposals: Result<_, _> = rows.iter().filter_map(|row| proposal(row).transpose()).collect();
            let page = window.page(proposals.map_err(failed)?, behind);
            let page_info = Some(page_info(&page));
            let edge = |(cursor, node)| ProtocolUpgradeProposalEdge { node: Some(node), cursor };
            let edges = page.edges.into_iter().map(edge).collect();
            let protocol_upgrade_proposals = Some(ProtocolUpgradeProposalPage { edges, page_info });
            Ok(Answer::at(head, ListProtocolUpgradeProposalsReply { protocol_upgrade_proposals }))
        })
    }
}

/// The stored form of an approver's key: lower case. PostgreSQL accepts no NUL in a text, so NUL is replaced
/// by U+FFFD, which is in no stored key either.
fn stored_key(given: &str) -> String {
    given.to_lowercase().replace('\0', "\u{fffd}")
}

fn proposal(row: &Row) -> Result<Option<(Key, ProtocolUpgradeProposal)>, ReadError> {
    let Some(height) = row.try_get::<_, Option<i64>>("upgrade_block_height")? else { return Ok(None) };
    let key = Key { height, tag: row.try_get("network_release_tag")? };
    let status: &str = row.try_get("status")?;
    let proposal = ProtocolUpgradeProposal {
        upgrade_block_height: u64::try_from(height)
            .map_err(|_| ReadError::Unreadable(format!("upgrade_block_height {height}")))?,
        network_release_tag: key.tag.clone(),
        approvers: row.try_get("approvers")?,
        status: Status::from_str_name(status).unwrap_or_default().into(),
    };
    Ok(Some((key, proposal)))
}
