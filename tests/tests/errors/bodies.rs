//! Malformed bodies of submissions: 400, number 10015, before any service is asked.

use mesh_testbed::Answer;
use mesh_tests::{outside::Outside, problem::assert_problem};
use reqwest::Method;

/// Bodies that none of the submissions can be made of.
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
    let mesh = Outside::fixture().await;
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

#[tokio::test]
async fn a_value_of_the_wrong_kind_is_malformed_and_its_field_named() {
    let mesh = Outside::fixture().await;
    for (field, body) in [
        ("type", r#"{"type":"TYPE_FOO"}"#),
        ("type", r#"{"type":"type_sync"}"#),
        ("type", r#"{"type":4}"#),
        ("type", r#"{"type":-1}"#),
        ("type", r#"{"type":1.5}"#),
        ("type", r#"{"type":true}"#),
        ("type", r#"{"type":[1]}"#),
        ("type", r#"{"type":{}}"#),
        ("tx", r#"{"tx":[]}"#),
        ("tx", r#"{"tx":"AQI="}"#),
        ("tx", r#"{"tx":1}"#),
        ("inputData", r#"{"tx":{"inputData":"*"}}"#),
        ("inputData", r#"{"tx":{"inputData":"A"}}"#),
        ("inputData", r#"{"tx":{"inputData":1}}"#),
        ("version", r#"{"tx":{"version":"V3"}}"#),
        ("version", r#"{"tx":{"version":1}}"#),
        ("pubKey", r#"{"tx":{"pubKey":1}}"#),
        ("value", r#"{"tx":{"signature":{"value":1}}}"#),
        ("version", r#"{"tx":{"signature":{"version":-1}}}"#),
        ("version", r#"{"tx":{"signature":{"version":4294967296}}}"#),
        ("nonce", r#"{"tx":{"pow":{"nonce":-1}}}"#),
        ("nonce", r#"{"tx":{"pow":{"nonce":"1x"}}}"#),
        ("nonce", r#"{"tx":{"pow":{"nonce":18446744073709551616}}}"#),
        ("nonce", r#"{"tx":{"pow":{"nonce":"18446744073709551616"}}}"#),
    ] {
        let seen = assert_problem(&mesh.post("/transaction", body).await, 400, 3, 10015);
        assert!(seen.inner.contains(field), "{body}: {seen:?}");
    }
}

#[tokio::test]
async fn a_key_given_twice_is_malformed_in_whichever_spelling() {
    let mesh = Outside::fixture().await;
    for body in [
        r#"{"type":1,"type":1}"#,
        r#"{"tx":{},"tx":{}}"#,
        r#"{"tx":null,"tx":{}}"#,
        r#"{"tx":{"inputData":"AQI=","input_data":"AQI="}}"#,
        r#"{"tx":{"pow":{"nonce":1,"nonce":"1"}}}"#,
        r#"{"tx":{"pubKey":"a","address":"b"}}"#,
    ] {
        assert_problem(&mesh.post("/transaction", body).await, 400, 3, 10015);
    }
}
