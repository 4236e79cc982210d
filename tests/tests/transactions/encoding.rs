//! The hash of a transaction is that of its protobuf encoding by anybody else, however its JSON is written.

use std::{process::Command, time::Duration};

use futures_util::{StreamExt, stream};
use mesh_testbed::DevNode;
use serde_json::Value;

use crate::Stage;

/// How many are tried, unless `MESH_TEST_ENCODINGS` says more.
const USUAL: usize = 300;

#[tokio::test]
async fn the_encoding_is_that_of_pythons_protobuf() {
    let count: usize =
        std::env::var("MESH_TEST_ENCODINGS").ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL);
    let made = Command::new("python3")
        .args([concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transactions/encode.py"), &count.to_string(), "7"])
        .output();
    let cases = match made {
        Ok(made) if made.status.success() => String::from_utf8(made.stdout).unwrap(),
        Ok(made) => {
            eprintln!("skipped, python3 has no protobuf: {}", String::from_utf8_lossy(&made.stderr));
            return;
        }
        Err(error) => {
            eprintln!("skipped, there is no python3: {error}");
            return;
        }
    };
    let node = DevNode::configure().without_checks().every(Duration::from_millis(100));
    let stage = &Stage::set(node).await;
    let wrong: Vec<String> = stream::iter(cases.lines())
        .map(|case| async move {
            let (body, hash) = case.rsplit_once('\t').unwrap();
            let answer = stage.send("/transaction", body.to_owned()).await;
            let told = serde_json::from_slice::<Value>(&answer.body).unwrap()["txHash"].clone();
            (told != hash).then(|| format!("{body}: {hash} wanted, {answer:?}"))
        })
        .buffer_unordered(16)
        .filter_map(std::future::ready)
        .collect()
        .await;
    assert_eq!(cases.lines().count(), count);
    assert!(wrong.is_empty(), "{} of {count}, first {}", wrong.len(), wrong[0]);
}
