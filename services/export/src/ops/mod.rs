//! One file per operation, and the one row that each needs.

mod export_ledger_entries;
mod export_network_history;
pub(crate) mod ledger;
mod list_all_network_history_segments;
mod list_datasets;

use actix::Addr;
use mesh_bus::{Bus, Limits, Router};
use mesh_chassis::Registry;
use proto_msgs::v2::{
    ExportLedgerEntriesRequest, ExportNetworkHistoryRequest, ListAllNetworkHistorySegmentsRequest,
    ListDatasetsRequest,
};

use crate::Export;

/// Every operation of the workload.
pub(crate) fn router(
    bus: Bus,
    export: Addr<Export>,
    limits: Limits,
    registry: &mut Registry,
) -> Router<Export> {
    Router::new(bus, "export", export, limits, registry)
        .on_stream::<ExportLedgerEntriesRequest>()
        .on_stream::<ExportNetworkHistoryRequest>()
        .on::<ListAllNetworkHistorySegmentsRequest>()
        .on::<ListDatasetsRequest>()
}
