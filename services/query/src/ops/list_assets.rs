//! ListAssets: the latest version of each asset.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, ReadError, RowReader, Value};
use proto_msgs::{
    numbers::list_assets::ASSETS as FAILED,
    v2::{
        Asset, AssetEdge, AssetPage, ListAssetsReply, ListAssetsRequest, PageInfo, Pagination, asset::Status,
    },
};

use crate::paging::PagedList;

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
    is_grouped: false,
    filters: &[Filter::Matches("status = $::text::asset_status")],
    indexed: &[],
    plainly_indexed: &[],
    past: &[],
    past_bound: None,
};

impl PagedList for ListAssetsRequest {
    type Node = Asset;

    const FAILED: u32 = FAILED;
    const LIST: &'static List = &ASSETS;

    fn pagination(&self) -> Option<&Pagination> {
        self.pagination.as_ref()
    }

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        let status = match self.status() {
            Status::Unspecified => None,
            status => Some(Value::Text(status.as_str_name().to_owned())),
        };
        Ok(vec![status])
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

    fn reply(nodes: Vec<(Asset, String)>, page_info: Option<PageInfo>) -> ListAssetsReply {
        let edges = nodes.into_iter().map(|(node, cursor)| AssetEdge { node: Some(node), cursor });
        ListAssetsReply { assets: Some(AssetPage { edges: edges.collect(), page_info }) }
    }
}
