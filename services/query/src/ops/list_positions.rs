//! ListPositions: the latest position of each party in each market.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, ReadError, Row, TimeUs, Value};
use proto_msgs::{
    numbers::list_positions::POSITIONS as FAILED,
    v2::{
        ListPositionsReply, ListPositionsRequest, PageInfo, Pagination, Position, PositionEdge, PositionPage,
    },
};

use crate::paging::PagedList;

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

impl PagedList for ListPositionsRequest {
    type Node = Position;

    const FAILED: u32 = FAILED;
    const LIST: &'static List = &POSITIONS;

    fn pagination(&self) -> Option<&Pagination> {
        self.pagination.as_ref()
    }

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        Ok(vec![self.party_id.map(Value::Text), self.market_id.map(Value::Text)])
    }

    fn node(row: &Row) -> Result<Position, ReadError> {
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

    fn reply(nodes: Vec<(Position, String)>, page_info: Option<PageInfo>) -> ListPositionsReply {
        let edges = nodes.into_iter().map(|(node, cursor)| PositionEdge { node: Some(node), cursor });
        ListPositionsReply { positions: Some(PositionPage { edges: edges.collect(), page_info }) }
    }
}
