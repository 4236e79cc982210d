//! ListAssets: the latest version of each asset.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, ReadError, RowReader, Value};
use proto_msgs::{
    numbers::list_assets::ASSETS as FAILED,
    v2::{Asset, ListAssetsRequest, asset::Status},
};

use crate::paging::{PagedList, chosen};

/// Assets by id. A network has few of them, so the filter is applied along the walk.
pub static ASSETS: List = List {
    name: "asset",
    table: "assets_current",
    key: &[KeyKind::Text.column("id")],
    columns: &[
        "name",
        "symbol",
        "coalesce(decimals, 0) AS decimals",
        "quantum::text AS quantum",
        "status::text AS status",
        "coalesce(erc20_contract, '') AS erc20_contract",
    ],
    filters: &[Filter::Matches("status = $::text::asset_status")],
    ..List::PLAIN
};

impl PagedList for ListAssetsRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &ASSETS;

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        Ok(vec![chosen(self.status(), Status::as_str_name)])
    }

    fn node(row: &RowReader<'_>) -> Result<Asset, ReadError> {
        Ok(Asset {
            id: row.get("id")?,
            name: row.get("name")?,
            symbol: row.get("symbol")?,
            decimals: row.get("decimals")?,
            quantum: row.decimal("quantum")?.unwrap_or_default(),
            status: row.named("status", Status::from_str_name)?.into(),
            erc20_contract: row.get("erc20_contract")?,
        })
    }
}
