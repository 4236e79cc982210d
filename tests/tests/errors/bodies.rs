//! Malformed bodies of submissions that the cases cannot hold: 400, number 10015, before any service is asked.

use mesh_testbed::Answer;
use mesh_tests::{client::MeshClient, problem::assert_problem};
use reqwest::Method;

#[tokio::test]
async fn a_body_that_is_not_utf_8_or_deeply_nested_is_malformed() {
    let mesh = MeshClient::fixture().await;
    for path in ["/transaction", "/transaction/check", "/transaction/raw", "/transaction/raw/check"] {
        for body in
            [&b"{\"tx\":\"\xff\"}"[..], b"{\"x\":\"\xff\"}", b"{\"\xff\":1}", b"{\"x\":{\"y\":[\"\xc3\"]}}"]
        {
            let request = mesh.request(Method::POST, path).body(body.to_vec());
            assert_problem(&Answer::to(request).await, 400, 3, 10015);
        }
        let deep = format!("{}{}", "{\"x\":".repeat(100_000), "}".repeat(100_000));
        assert_problem(&mesh.post(path, &deep).await, 400, 3, 10015);
    }
}
