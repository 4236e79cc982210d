//! The mesh through `grpcurl`: every read operation, called by reflection alone. Skipped where `grpcurl` is
//! not installed.

use std::process::{Output, Stdio};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh_tests::{cases, client::MeshClient, fixture, rpc::Call, say};
use serde_json::{Deserializer, Value, json};
use tokio::process::Command;

async fn grpcurl(arguments: &[&str]) -> Output {
    Command::new("grpcurl").args(arguments).kill_on_drop(true).output().await.unwrap()
}

#[tokio::test]
async fn grpcurl_calls_every_operation_by_reflection_alone() {
    let known = Command::new("grpcurl").arg("-version").stderr(Stdio::null()).status().await;
    if !known.is_ok_and(|status| status.success()) {
        return say("skipped: there is no grpcurl");
    }
    let mesh_client = MeshClient::fixture().await;
    let address = mesh_client.url().trim_start_matches("http://");
    let listed = grpcurl(&["-plaintext", address, "list"]).await;
    let listed = String::from_utf8(listed.stdout).unwrap();
    for service in ["Query", "Export", "TxRelay", "NodeInfo"] {
        assert!(listed.lines().any(|line| line == format!("api.v2.{service}")), "{listed}");
    }
    let call = async |method: &str, message: &Value| {
        let message = message.to_string();
        let output = grpcurl(&["-plaintext", "-emit-defaults", "-d", &message, address, method]).await;
        let stderr_text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{method} {message}: {stderr_text}");
        // The output is a sequence of JSON values.
        let output_values = Deserializer::from_slice(&output.stdout).into_iter::<Value>();
        output_values.collect::<Result<Vec<_>, _>>().unwrap()
    };
    let mut calls = 0;
    for (name, path) in cases::answered() {
        let called = Call::from_path(&path).unwrap();
        if called.operation.streaming {
            continue;
        }
        let message = called.request_json();
        let output_values = call(&format!("{}/{name}", called.operation.service), &message).await;
        assert_eq!(output_values, [mesh_client.get(&path).await.json()], "{name} {message}");
        calls += 1;
    }
    let path = format!("/api/v2/ledgerentry/export?partyId={}&assetId={}", fixture::PARTY, fixture::ASSET);
    let message = json!({"partyId": fixture::PARTY, "assetId": fixture::ASSET});
    let output_values = call("api.v2.Export/ExportLedgerEntries", &message).await;
    let bytes: Vec<u8> = output_values
        .iter()
        .flat_map(|message| STANDARD.decode(message["data"].as_str().unwrap()).unwrap())
        .collect();
    assert!(bytes == mesh_client.get(&path).await.body);
    say(&format!("grpcurl called {} operations", calls + 1));
}
