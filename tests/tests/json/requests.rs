//! The accepted forms of requests: J2 to J6, J10, J11.

use mesh_tests::{
    cases,
    client::MeshClient,
    fixture::{MARKET, NODE, ORACLE_SPEC, PARTY, WITHDRAWAL},
    problem::assert_problem,
};

/// Asserts that requests have the same answer, and not an empty one.
async fn assert_same(mesh: &MeshClient, paths: &[String]) {
    let mut answers = Vec::new();
    for path in paths {
        let answer = mesh.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answers.push(answer.json());
    }
    for (path, answer) in paths.iter().zip(&answers) {
        assert_eq!(answer, &answers[0], "{path} and {}", paths[0]);
        assert!(!answer.to_string().contains(":[]}"), "{path} finds nothing: {answer}");
    }
}

/// Asserts that bodies pass the gateway's checks: the answer is 503, since no tx-relay runs.
async fn assert_accepted(mesh: &MeshClient, path: &str, bodies: &[&str]) {
    for body in bodies {
        let answer = mesh.post(path, body).await;
        assert_eq!(answer.status, 503, "{body}: {answer:?}");
        assert_problem(&answer, 503, 14, 10000);
    }
}

#[tokio::test]
async fn j2_parameters_are_taken_in_both_spellings() {
    let mesh = MeshClient::fixture().await;
    for (camel, snake) in [
        (
            format!("/api/v2/upgrade/proposals?approvedBy={NODE}"),
            format!("/api/v2/upgrade/proposals?approved_by={NODE}"),
        ),
        (
            format!("/api/v2/candle?candleId=trades_candle_block_{MARKET}&fromTimestamp=1687255201000000000"),
            format!(
                "/api/v2/candle?candle_id=trades_candle_block_{MARKET}&from_timestamp=1687255201000000000"
            ),
        ),
        (
            "/api/v2/rewards/epoch/summaries?filter.assetIds=VOTE&filter.toEpoch=2".to_owned(),
            "/api/v2/rewards/epoch/summaries?filter.asset_ids=VOTE&filter.to_epoch=2".to_owned(),
        ),
        (
            format!("/api/v2/delegations?partyId={PARTY}&pagination.newestFirst=false"),
            format!("/api/v2/delegations?party_id={PARTY}&pagination.newest_first=false"),
        ),
    ] {
        assert_same(&mesh, &[camel, snake]).await;
    }
}

#[tokio::test]
async fn j2_body_fields_are_taken_in_both_spellings() {
    let mesh = MeshClient::fixture().await;
    let bodies =
        [r#"{"tx":{"inputData":"AQI=","pubKey":"ab"}}"#, r#"{"tx":{"input_data":"AQI=","pub_key":"ab"}}"#];
    assert_accepted(&mesh, "/transaction", &bodies).await;
}

#[tokio::test]
async fn j3_integers_of_a_body_are_taken_as_text_or_number() {
    let mesh = MeshClient::fixture().await;
    let bodies = [
        r#"{"tx":{"pow":{"nonce":"18446744073709551615"},"signature":{"version":1}}}"#,
        r#"{"tx":{"pow":{"nonce":18446744073709551615},"signature":{"version":"1"}}}"#,
        r#"{"tx":{"pow":{"nonce":1e3},"signature":{"version":1.0}}}"#,
        r#"{"tx":{"pow":{"nonce":1e19},"signature":{"version":10E-1}}}"#,
        r#"{"tx":{"pow":{"nonce":1.8446744073709551615e19},"signature":{"version":0.1e+1}}}"#,
        r#"{"tx":{"pow":{"nonce":18446744073709551615.000},"signature":{"version":-0.0e99}}}"#,
    ];
    assert_accepted(&mesh, "/transaction", &bodies).await;
    for nonce in [
        "1e20",
        "2e19",
        "18446744073709551616",
        "1.8446744073709551616e19",
        "1.84467440737095516151e19",
        "1e-1",
        "9007199254740993.5",
        "-1",
        "-1e3",
        "1e999999999999",
        "1e-999999999999",
        "\"1e3\"",
        "true",
        "{}",
        "[1]",
    ] {
        let body = format!(r#"{{"tx":{{"pow":{{"nonce":{nonce}}}}}}}"#);
        assert_problem(&mesh.post("/transaction", &body).await, 400, 3, 10015);
    }
}

#[tokio::test]
async fn j4_booleans_of_a_query_are_true_false_one_and_zero() {
    let mesh = MeshClient::fixture().await;
    let list = |order: &str| format!("/api/v2/delegations?pagination.newestFirst={order}");
    assert_same(&mesh, &[list("true"), list("1"), "/api/v2/delegations".to_owned()]).await;
    assert_same(&mesh, &[list("false"), list("0")]).await;
    let (newest, oldest) = (mesh.get(&list("1")).await.json(), mesh.get(&list("0")).await.json());
    assert_ne!(newest, oldest);
}

#[tokio::test]
async fn j5_enums_are_taken_by_name_and_by_number() {
    let mesh = MeshClient::fixture().await;
    let list = |status: &str| format!("/api/v2/upgrade/proposals?status={status}");
    assert_same(&mesh, &[list("PROTOCOL_UPGRADE_PROPOSAL_STATUS_REJECTED"), list("3")]).await;
    assert_same(&mesh, &[list("PROTOCOL_UPGRADE_PROPOSAL_STATUS_UNSPECIFIED"), list("0"), list("")]).await;
    let bodies = [r#"{"type":"TYPE_COMMIT"}"#, r#"{"type":3}"#, r#"{"type":"3"}"#, r#"{"tx":{"version":2}}"#];
    assert_accepted(&mesh, "/transaction", &bodies).await;
    assert_problem(&mesh.post("/transaction", r#"{"type":"TYPE_FOO"}"#).await, 400, 3, 10015);
    assert_problem(&mesh.post("/transaction", r#"{"tx":{"version":"TX_VERSION_V1"}}"#).await, 400, 3, 10015);
}

#[tokio::test]
async fn j6_bytes_are_taken_in_every_form_of_base64() {
    let mesh = MeshClient::fixture().await;
    let bodies =
        [r#"{"tx":"+/8="}"#, r#"{"tx":"-_8="}"#, r#"{"tx":"+/8"}"#, r#"{"tx":"-_8"}"#, r#"{"tx":""}"#];
    assert_accepted(&mesh, "/transaction/raw", &bodies).await;
}

#[tokio::test]
async fn j10_ids_are_taken_in_any_case() {
    let mesh = MeshClient::fixture().await;
    for (before, id) in [
        ("/api/v2/oracle/spec/", ORACLE_SPEC),
        ("/api/v2/withdrawal/", WITHDRAWAL),
        ("/accounts?party=", PARTY),
        ("/accounts?market=", MARKET),
        ("/api/v2/candle?candleId=trades_candle_1_hour_", MARKET),
        ("/api/v2/rewards/epoch/summaries?filter.marketIds=", MARKET),
        ("/api/v2/delegations?nodeId=", NODE),
        ("/api/v2/delegations?partyId=", PARTY),
        ("/api/v2/upgrade/proposals?approvedBy=", NODE),
    ] {
        assert_same(&mesh, &[format!("{before}{id}"), format!("{before}{}", id.to_uppercase())]).await;
    }
}

#[tokio::test]
async fn j10_a_short_asset_keeps_its_case() {
    let mesh = MeshClient::fixture().await;
    let found = async |asset: &str| {
        let answer =
            mesh.get(&format!("/api/v2/rewards/epoch/summaries?filter.assetIds={asset}")).await.json();
        answer["summaries"]["edges"].as_array().map(Vec::len)
    };
    assert_eq!((found("VOTE").await, found("vote").await), (Some(2), Some(0)));
}

#[tokio::test]
async fn j11_unknown_parameters_and_fields_are_ignored() {
    let mesh = MeshClient::fixture().await;
    let strange =
        "foo=1&foo=2&pagination=1&pagination.size=x&pagination.first.x=y&filter=&=&&%00=%FF&PARTY=x";
    assert_same(&mesh, &["/accounts".to_owned(), format!("/accounts?{strange}")]).await;
    assert_same(&mesh, &["/api/v2/delegations".to_owned(), format!("/api/v2/delegations?{strange}")]).await;
    let body = r#"{"foo":{"bar":[1,"x",null,{"type":"TYPE_FOO"}]},"foo":1,"tx":{"more":1e999},"Type":"x"}"#;
    assert_accepted(&mesh, "/transaction", &[body, "{}"]).await;
}

#[tokio::test]
async fn a_parameter_that_is_not_utf_8_is_refused_with_its_number() {
    let mesh = MeshClient::fixture().await;
    for (path, number) in [
        ("/api/v2/upgrade/proposals?approvedBy=%FF", 10_015),
        ("/api/v2/upgrade/proposals?approved_by=a%c3", 10_015),
        ("/api/v2/upgrade/proposals?approvedBy=%ED%A0%80", 10_015),
        ("/api/v2/upgrade/proposals?approvedBy=%C0%80", 10_015),
        ("/api/v2/upgrade/proposals?status=%FF", 10_015),
        ("/accounts?party=%FF", 10_013),
        ("/accounts?market=%ff", 10_011),
        ("/api/v2/candle?candleId=%FF", 10_041),
        ("/api/v2/delegations?pagination.first=%FF", 10_028),
        ("/api/v2/delegations?pagination.after=%FF", 10_028),
        ("/api/v2/rewards/epoch/summaries?filter.assetIds=VOTE&filter.assetIds=%FF", 10_029),
        ("/api/v2/ledgerentry/export?dateRange.startTimestamp=%FF", 10_044),
        ("/api/v2/networkhistory/export?fromBlock=%FF", 240_011),
        ("/api/v2/withdrawal/%FF", 80_005),
        ("/api/v2/oracle/spec/a%80", 10_043),
        ("/transaction/%FF", 10_015),
        ("/accounts?pretty=%FF", 10_015),
        ("/openapi.json?pretty=%FF", 10_015),
        ("/accounts?%FF=1", 10_015),
        ("/accounts?party%FF=1", 10_015),
        ("/transaction/check?%FF=1", 10_015),
        ("/watch?read=%FF", 10_015),
        ("/watch?%FF&read=/accounts", 10_015),
        ("/watch?read=/api/v2/upgrade/proposals%3FapprovedBy=%25FF", 10_015),
        ("/watch?read=/api/v2/withdrawal/%25FF", 80_005),
    ] {
        let answer = if path.starts_with("/transaction/check") {
            mesh.post(path, "{}").await
        } else {
            mesh.get(path).await
        };
        assert_problem(&answer, 400, 3, number);
    }
    for path in [
        "/api/v2/upgrade/proposals?approvedBy=%C3%A4%F0%9F%92%B0",
        "/api/v2/upgrade/proposals?approvedBy=100%",
        "/api/v2/upgrade/proposals?approvedBy=%EF%BF%BD+%zz%2",
        "/%61ccounts",
    ] {
        assert_eq!(mesh.get(path).await.status, 200, "{path}");
    }
    assert_problem(&mesh.get("/%FFaccounts").await, 404, 5, 10_000);
}

#[tokio::test]
async fn j11_lists_are_given_by_repeating_and_empty_elements_are_dropped() {
    let mesh = MeshClient::fixture().await;
    let list = |filter: String| format!("/api/v2/rewards/epoch/summaries?{filter}");
    let repeated = list(format!("filter.assetIds=VOTE&filter.assetIds={}", "f1".repeat(32)));
    let mixed = list(format!(
        "filter.asset_ids={}&filter.assetIds=&filter.assetIds=VOTE&filter.marketIds=",
        "F1".repeat(32)
    ));
    assert_same(&mesh, &[repeated, mixed, list(String::new())]).await;
}

#[tokio::test]
async fn j11_an_empty_singular_parameter_counts_as_absent() {
    let mesh = MeshClient::fixture().await;
    let empty = "partyId=&nodeId=&epochId=&pagination.first=&pagination.after=&pagination.last=&pagination.newestFirst=";
    assert_same(&mesh, &["/api/v2/delegations".to_owned(), format!("/api/v2/delegations?{empty}")]).await;
    assert_same(&mesh, &["/accounts".to_owned(), "/accounts?party=&market".to_owned()]).await;
    let bodies = [r#"{"tx":{"pubKey":"ab","address":""}}"#, r#"{"tx":{"address":"","pubKey":"ab"}}"#];
    assert_accepted(&mesh, "/transaction", &bodies).await;
}

#[tokio::test]
async fn j12_pretty_indents_the_answer_and_changes_nothing_else() {
    let mesh = MeshClient::fixture().await;
    for (_, path) in cases::answered() {
        let with = |pretty: &str| format!("{path}{}{pretty}", if path.contains('?') { '&' } else { '?' });
        let plain = mesh.get(&path).await;
        assert!(!plain.text().contains('\n'), "{path} is indented unasked");
        for pretty in ["pretty", "pretty=true", "pretty=1", "pretty="] {
            let answer = mesh.get(&with(pretty)).await;
            assert_eq!(answer.json(), plain.json(), "{path}, {pretty}");
            assert!(answer.text().starts_with("{\n  \""), "{path}, {pretty}: {answer:?}");
            let order =
                |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
            assert_eq!(order(answer.text()), order(plain.text()), "{path}, {pretty}");
        }
        let off = mesh.get(&with("pretty=false")).await;
        assert_eq!(off.body, plain.body, "{path}");
    }
}
