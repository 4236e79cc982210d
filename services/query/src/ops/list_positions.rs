//! ListPositions: what each party holds in each market now, and what it held at the last settlement.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, PastSource, ReadError, RowReader, Value};
use proto_msgs::{
    numbers::list_positions::POSITIONS as FAILED,
    v2::{ListPositionsRequest, Position, SettledPosition, position::Status},
};

use crate::paging::PagedList;

/// Positions by party and market. There is an index for each filter.
pub static POSITIONS: List = List {
    name: "position",
    table: "positions_current",
    key: &[KeyKind::Text.column("party_id"), KeyKind::Text.column("market_id")],
    columns: &[
        "pending_open_volume",
        // PostgreSQL rounds a half away from zero.
        "round(pending_realised_pnl)::text AS pending_realised_pnl",
        "round(pending_unrealised_pnl)::text AS pending_unrealised_pnl",
        "round(pending_average_entry_market_price)::text AS pending_average_entry_market_price",
        "round(loss_socialisation_amount)::text AS loss_socialisation_amount",
        "distressed_status::text AS distressed_status",
        "open_volume",
        "realised_pnl::text AS realised_pnl",
        "unrealised_pnl::text AS unrealised_pnl",
        "average_entry_price::text AS average_entry_price",
        "block_time",
    ],
    filters: &[Filter::Equal("party_id"), Filter::Equal("market_id")],
    indexed: &["market_id"],
    past: &[PastSource::new(include_str!("../../sql/past/list_positions.sql"))],
    ..List::PLAIN
};

impl PagedList for ListPositionsRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &POSITIONS;

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        Ok(vec![self.party_id.map(Value::Text), self.market_id.map(Value::Text)])
    }

    fn node(row: &RowReader<'_>) -> Result<Position, ReadError> {
        let decimal = |column| Ok::<_, ReadError>(row.decimal(column)?.unwrap_or_default());
        let settled = SettledPosition {
            open_volume: row.get("open_volume")?,
            realised_pnl: decimal("realised_pnl")?,
            unrealised_pnl: decimal("unrealised_pnl")?,
            average_entry_price: decimal("average_entry_price")?,
        };
        Ok(Position {
            market_id: row.get("market_id")?,
            party_id: row.get("party_id")?,
            open_volume: row.get("pending_open_volume")?,
            realised_pnl: decimal("pending_realised_pnl")?,
            unrealised_pnl: decimal("pending_unrealised_pnl")?,
            average_entry_price: decimal("pending_average_entry_market_price")?,
            updated_at: row.ns("block_time")?,
            loss_socialisation_amount: decimal("loss_socialisation_amount")?,
            status: row.named("distressed_status", Status::from_str_name)?.into(),
            settled: Some(settled),
        })
    }
}
