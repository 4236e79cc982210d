//! ListAssets: the latest version of each asset.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_store::{Filter, KeyKind, List, ReadError, Row, Value};
use proto_msgs::{
    numbers::list_assets::ASSETS as FAILED,
    v2::{Asset, AssetEdge, AssetPage, ListAssetsReply, ListAssetsRequest, asset::Status},
};

use crate::{Query, paging};

/// Assets by id. A network has few of them, so the filter is applied along the walk.
pub static ASSETS: List = List {
    name: "asset",
    table: "assets_current",
    key: &[KeyKind::Text.column("id")],
    columns: &[
        "name",
        "symbol",
        "coalesce(decimals, 0) AS decimals",
        "coalesce(quantum::text, '') AS quantum",
        "status::text AS status",
        "coalesce(erc20_contract, '') AS erc20_contract",
    ],
    is_grouped: false,
    filters: &[Filter::Matches("status = $::text::asset_status")],
    own_indexes: &[],
};

impl Handler<Ask<ListAssetsRequest>> for Query {
    type Result = AnswerFuture<ListAssetsReply>;

    fn handle(&mut self, Ask(request, scope): Ask<ListAssetsRequest>, _: &mut Context<Self>) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let window = paging::window(&ASSETS, request.pagination.as_ref(), sizes)?;
            let status = match request.status() {
                Status::Unspecified => None,
                status => Some(Value::Text(status.as_str_name().to_owned())),
            };
            let page = paging::read(&store, &ASSETS, &window, vec![status], asset).await;
            let page = page.map_err(|error| error.problem(FAILED))?;
            let edge = |(node, cursor)| AssetEdge { node: Some(node), cursor };
            let edges = page.edges.into_iter().map(edge).collect();
            let assets = Some(AssetPage { edges, page_info: Some(page.info) });
            Ok(Answer::at(page.head, ListAssetsReply { assets }))
        })
    }
}

fn asset(row: &Row) -> Result<Asset, ReadError> {
    let status: &str = row.try_get("status")?;
    Ok(Asset {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        symbol: row.try_get("symbol")?,
        decimals: row.try_get("decimals")?,
        quantum: row.try_get("quantum")?,
        status: Status::from_str_name(status).unwrap_or_default().into(),
        erc20_contract: row.try_get("erc20_contract")?,
    })
}
