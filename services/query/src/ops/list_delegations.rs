//! ListDelegations: the latest amount per party, node and epoch.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_store::{Filter, KeyKind, List, ReadError, Row, Value};
use proto_msgs::{
    numbers::list_delegations::DELEGATIONS as FAILED,
    v2::{Delegation, DelegationEdge, DelegationPage, ListDelegationsReply, ListDelegationsRequest},
};

use crate::{Query, paging};

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
    is_grouped: false,
    filters: &[Filter::Equal("party_id"), Filter::Equal("node_id"), Filter::Equal("epoch_id")],
    own_indexes: &[&["party_id"], &["node_id"]],
};

impl Handler<Ask<ListDelegationsRequest>> for Query {
    type Result = AnswerFuture<ListDelegationsReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<ListDelegationsRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let window = paging::window(&DELEGATIONS, request.pagination.as_ref(), sizes)?;
            let filters = vec![
                request.party_id.map(Value::Text),
                request.node_id.map(Value::Text),
                request.epoch_id.map(Value::Integer),
            ];
            let page = paging::read(&store, &DELEGATIONS, &window, filters, delegation).await;
            let page = page.map_err(|error| error.problem(FAILED))?;
            let edge = |(node, cursor)| DelegationEdge { node: Some(node), cursor };
            let edges = page.edges.into_iter().map(edge).collect();
            let delegations = Some(DelegationPage { edges, page_info: Some(page.info) });
            Ok(Answer::at(page.head, ListDelegationsReply { delegations }))
        })
    }
}

fn delegation(row: &Row) -> Result<Delegation, ReadError> {
    Ok(Delegation {
        party: row.try_get("party_id")?,
        node_id: row.try_get("node_id")?,
        amount: row.try_get("amount")?,
        epoch_seq: row.try_get::<_, i64>("epoch_id")?.to_string(),
    })
}
