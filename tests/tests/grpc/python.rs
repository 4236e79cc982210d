//! A Python client that knows nothing but the address: `reflected.py` calls every operation that it finds by
//! reflection.

use std::process::Stdio;

use mesh_tests::{cases, client::MeshClient, fixture, rpc::Call, say};
use serde_json::json;
use tokio::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc/reflected.py");

#[tokio::test]
async fn a_client_in_python_calls_every_operation_by_reflection_alone() {
    let mesh_client = MeshClient::fixture().await;
    let modules = "import grpc, grpc_reflection.v1alpha, google.protobuf";
    let known = Command::new("python3").args(["-c", modules]).stderr(Stdio::null()).status().await;
    if !known.is_ok_and(|status| status.success()) {
        return say("skipped: there is no python3 with grpcio, grpcio-reflection and protobuf");
    }
    // Requests are given to the script as JSON; it converts them to the messages that reflection describes.
    let mut calls = Vec::new();
    for (name, path) in cases::answered() {
        let called = Call::from_path(&path).unwrap();
        if !called.operation.streaming {
            let expected = mesh_client.get(&path).await.json();
            calls.push(json!({
                "service": called.operation.service,
                "method": name,
                "message": called.message.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
                "expected": expected,
            }));
        }
    }
    let refused = Call::from_path("/api/v2/withdrawal/x").unwrap();
    calls.push(json!({
        "service": refused.operation.service,
        "method": refused.operation.name,
        "message": refused.message.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "refused": {"code": 3, "number": 80005},
    }));
    let ledger = format!("/api/v2/ledgerentry/export?partyId={}&assetId={}", fixture::PARTY, fixture::ASSET);
    let called = Call::from_path(&ledger).unwrap();
    calls.push(json!({
        "service": called.operation.service,
        "method": called.operation.name,
        "message": called.message.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "download": mesh_client.get(&ledger).await.text(),
    }));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.json");
    std::fs::write(&file, serde_json::to_vec(&calls).unwrap()).unwrap();
    let ran = Command::new("python3")
        .arg(SCRIPT)
        .arg(mesh_client.url().trim_start_matches("http://"))
        .arg(&file)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    assert_eq!(out.trim(), format!("{} calls", calls.len()), "{err}");
}
