//! ListDelegations: the latest amount per party, node and epoch.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_store::{ListKey, ReadError, Row};
use proto_msgs::{
    numbers::list_delegations::DELEGATIONS,
    v2::{Delegation, DelegationEdge, DelegationPage, ListDelegationsReply, ListDelegationsRequest},
};

use crate::{
    Query,
    paging::{frame, page_info, window},
};

/// Sort key of delegations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    epoch: i64,
    party: String,
    node: String,
}

impl ListKey for Key {
    const LIST: &'static str = "delegation";

    fn values(&self) -> Vec<String> {
        vec![self.epoch.to_string(), self.party.clone(), self.node.clone()]
    }

    fn from_values(values: &[String]) -> Option<Self> {
        match values {
            [epoch, party, node] => {
                Some(Self { epoch: epoch.parse().ok()?, party: party.clone(), node: node.clone() })
            }
            _ => None,
        }
    }
}

impl Handler<Ask<ListDelegationsRequest>> for Query {
    type Result = AnswerFuture<ListDelegationsReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<ListDelegationsRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let failed = |error: ReadError| error.problem(DELEGATIONS);
            let window = window::<Key>(request.pagination.as_ref(), sizes)?;
            let position = window.position();
            let rows = store
                .list(
                    include_str!("../../sql/list_delegations.sql"),
                    &[
                        &request.party_id,
                        &request.node_id,
                        &request.epoch_id,
                        &window.descending(),
                        &window.rows(),
                        &position.map(|key| key.epoch),
                        &position.map(|key| key.party.as_str()),
                        &position.map(|key| key.node.as_str()),
                    ],
                )
                .await
                .map_err(failed)?;
            let (head, behind) = frame(&rows).map_err(failed)?;
            let delegations: Result<_, _> =
                rows.iter().filter_map(|row| delegation(row).transpose()).collect();
            let page = window.page(delegations.map_err(failed)?, behind);
            let page_info = Some(page_info(&page));
            let edge = |(cursor, node)| DelegationEdge { node: Some(node), cursor };
            let edges = page.edges.into_iter().map(edge).collect();
            Ok(Answer::at(
                head,
                ListDelegationsReply { delegations: Some(DelegationPage { edges, page_info }) },
            ))
        })
    }
}

fn delegation(row: &Row) -> Result<Option<(Key, Delegation)>, ReadError> {
    let Some(epoch) = row.try_get::<_, Option<i64>>("epoch_id")? else { return Ok(None) };
    let key = Key { epoch, party: row.try_get("party_id")?, node: row.try_get("node_id")? };
    let delegation = Delegation {
        party: key.party.clone(),
        node_id: key.node.clone(),
        amount: row.try_get::<_, Option<String>>("amount")?.unwrap_or_else(|| "0".to_owned()),
        epoch_seq: epoch.to_string(),
    };
    Ok(Some((key, delegation)))
}
