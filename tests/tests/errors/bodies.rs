//! Malformed bodies of submissions: 400, number 10015, before any service is asked.

use mesh_testbed::Answer;
use mesh_tests::{client::MeshClient, problem::assert_problem};
use reqwest::Method;

/// Bodies that no submission accepts.
const BROKEN: &[&str] = &[
    "",
    " ",
    "tx=1&type=2",
    "{",
    "}",
    "[]",
    "null",
    "true",
    "1",
    "\"tx\"",
    "{} {}",
    "{}x",
    "{\"tx\":}",
    "{\"tx\" \"x\"}",
    "{'tx':{}}",
    "{\"tx\":\"\\ud800\"}",
    "{\"tx\":\"\n\"}",
    "{tx:{}}",
    "{\"tx\":{},}",
    "\u{feff}{}",
];

#[tokio::test]
async fn a_body_that_is_no_json_object_is_malformed() {
    let mesh = MeshClient::fixture().await;
    for path in ["/transaction", "/transaction/check", "/transaction/raw", "/transaction/raw/check"] {
        for body in BROKEN {
            assert_problem(&mesh.post(path, body).await, 400, 3, 10015);
        }
        let request = mesh.request(Method::POST, path).body(b"{\"tx\":\"\xff\"}".to_vec());
        assert_problem(&Answer::to(request).await, 400, 3, 10015);
        let deep = format!("{}{}", "{\"x\":".repeat(100_000), "}".repeat(100_000));
        assert_problem(&mesh.post(path, &deep).await, 400, 3, 10015);
    }
}
