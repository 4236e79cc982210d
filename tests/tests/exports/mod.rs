//! Downloads as a client sees them: sealed history as spliced ZIPs with all forms of range requests, the
//! ledger as CSV, and the chunk form of both. The fixture's three blocks are three segments.

mod damage;
mod datasets;
mod handmade;
mod history;
mod ledger;
mod ranges;
mod recipes;
mod stranger;
mod traps;

use handmade::{HandmadeMesh, HandmadeSegments, Plan, expected, noise};

use mesh_testbed::{Answer, Database, Mesh};
use mesh_tests::{Copier, MeshClient, fixture};
use reqwest::Method;

const SEGMENTS: &str = "/api/v2/networkhistory/segments";

/// The CSV that PostgreSQL prints for the sealed fixture.
async fn copy(table: &str, spans: &[(u64, u64)]) -> Vec<u8> {
    Copier::open(&fixture::sealed_mesh().await.database).await.spans(table, spans).await
}

/// The JSON objects of a chunk form, one per line.
fn lines(answer: &Answer) -> Vec<serde_json::Value> {
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"), "{answer:?}");
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The decoded bytes of a chunk form.
fn bytes(lines: &[serde_json::Value]) -> Vec<u8> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let data = |line: &serde_json::Value| STANDARD.decode(line["result"]["data"].as_str().unwrap()).unwrap();
    lines.iter().flat_map(data).collect()
}
