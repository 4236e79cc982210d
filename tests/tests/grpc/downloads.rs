//! Downloads as streams of `google.api.HttpBody`: the same bytes as over HTTP.

use mesh_tests::{Call, MeshClient, Rpc, TableLock, assert_refused, fixture};
use prost_reflect::prost::Message;
use proto_msgs::{google::api::HttpBody, v2::ExportInfo};
use tonic::Code;

use crate::grpc::TIME_LIMIT;

/// Downloads over both protocols and compares.
async fn assert_same_download(rpc: &Rpc, mesh_client: &MeshClient, path: &str) -> Vec<HttpBody> {
    let over_http = mesh_client.get(path).await;
    assert_eq!(over_http.status, 200, "{over_http:?}");
    let messages = rpc.download(&Call::from_path(path).unwrap()).await.unwrap();
    let bytes: Vec<u8> = messages.iter().flat_map(|message| message.data.to_vec()).collect();
    assert!(bytes == over_http.body, "{path}: the bytes are others");
    for (at, message) in messages.iter().enumerate() {
        assert_eq!(Some(message.content_type.as_str()), over_http.header("content-type"), "{path}");
        assert!(message.data.len() <= 64 << 10, "{path}: a message of {}", message.data.len());
        assert_eq!(message.extensions.len(), usize::from(at == 0), "{path}: extensions of message {at}");
    }
    let info = &messages[0].extensions[0];
    assert_eq!(info.type_url, "type.googleapis.com/api.v2.ExportInfo");
    let info = ExportInfo::decode(info.value.as_slice()).unwrap();
    let disposition = format!("attachment; filename=\"{}\"", info.file_name);
    assert_eq!(over_http.header("content-disposition"), Some(disposition.as_str()));
    if let Some(length) = info.total_bytes {
        assert_eq!(length, over_http.body.len() as u64, "{path}");
    }
    messages
}

#[tokio::test]
async fn a_download_has_the_bytes_that_it_has_over_http() {
    let mesh_client = MeshClient::sealed_fixture().await;
    let rpc = Rpc::connect(&fixture::sealed_mesh().await.mesh).await;
    for table in ["TABLE_TRADES", "TABLE_BLOCKS", "TABLE_LEDGER"] {
        let path = format!("/api/v2/networkhistory/export?fromBlock=1&toBlock=3&table={table}");
        assert_same_download(&rpc, &mesh_client, &path).await;
    }
    let ledger =
        |party: &str| format!("/api/v2/ledgerentry/export?partyId={party}&assetId={}", fixture::ASSET);
    assert_same_download(&rpc, &mesh_client, &ledger(fixture::PARTY)).await;
    let empty = assert_same_download(&rpc, &mesh_client, &ledger(fixture::UNKNOWN_ID)).await;
    assert_eq!(empty.len(), 1, "a header line");

    let history = "/api/v2/networkhistory/export?fromBlock=1";
    let inverted = format!("{}&dateRange.startTimestamp=2&dateRange.endTimestamp=1", ledger(fixture::PARTY));
    for (path, code, number) in [
        (format!("{history}&toBlock=9&table=TABLE_TRADES"), 5, 240_013),
        (format!("{history}&toBlock=3"), 3, 240_010),
        (inverted, 3, 10_044),
    ] {
        assert_refused(rpc.download(&Call::from_path(&path).unwrap()).await, code, number);
    }
}

#[test]
fn a_download_that_exceeds_its_deadline_ends_with_deadline_exceeded() {
    fixture::exclusively(async |database, mesh| {
        let rpc = Rpc::connect(mesh).await;
        let called = Call::from_path(fixture::LEDGER).unwrap();
        let locked = TableLock::acquire(database, "ledger").await;
        let request = called.with_metadata(&[("grpc-timeout", "300m")]);
        let mut stream = None;
        let refused = match rpc.stream(&called, request).await {
            Err(status) => Err(status),
            Ok(opened) => stream.insert(opened).message().await,
        };
        assert_eq!(refused.expect_err("its time is over").code(), Code::DeadlineExceeded);
        // The edge cancels its pulls, which ends their SQL statements.
        locked.await_queries("export", 0, TIME_LIMIT).await;
        locked.release().await;
    });
}
