//! ListPositions: the latest position of each party in each market.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_store::{Filter, KeyKind, List, ReadError, Row, TimeUs, Value};
use proto_msgs::{
    numbers::list_positions::POSITIONS as FAILED,
    v2::{ListPositionsReply, ListPositionsRequest, Position, PositionEdge, PositionPage},
};

use crate::{Query, paging};

/// Positions by party and market. There is an index for each filter.
pub static POSITIONS: List = List {
    name: "position",
    table: "positions_current",
    key: &[KeyKind::Text.column("party_id"), KeyKind::Text.column("market_id")],
    columns: &[
        "open_volume",
        "realised_pnl::text AS realised_pnl",
        "unrealised_pnl::text AS unrealised_pnl",
        "average_entry_price::text AS average_entry_price",
        "block_time",
    ],
    is_grouped: false,
    filters: &[Filter::Equal("party_id"), Filter::Equal("market_id")],
    own_indexes: &[&["market_id"]],
};

impl Handler<Ask<ListPositionsRequest>> for Query {
    type Result = AnswerFuture<ListPositionsReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<ListPositionsRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let window = paging::window(&POSITIONS, request.pagination.as_ref(), sizes)?;
            let filters = vec![request.party_id.map(Value::Text), request.market_id.map(Value::Text)];
            let page = paging::read(&store, &POSITIONS, &window, filters, position).await;
            let page = page.map_err(|error| error.problem(FAILED))?;
            let edge = |(node, cursor)| PositionEdge { node: Some(node), cursor };
            let edges = page.edges.into_iter().map(edge).collect();
            let positions = Some(PositionPage { edges, page_info: Some(page.info) });
            Ok(Answer::at(page.head, ListPositionsReply { positions }))
        })
    }
}

fn position(row: &Row) -> Result<Position, ReadError> {
    Ok(Position {
        market_id: row.try_get("market_id")?,
        party_id: row.try_get("party_id")?,
        open_volume: row.try_get("open_volume")?,
        realised_pnl: row.try_get("realised_pnl")?,
        unrealised_pnl: row.try_get("unrealised_pnl")?,
        average_entry_price: row.try_get("average_entry_price")?,
        updated_at: row.try_get::<_, TimeUs>("block_time")?.ns(),
    })
}
