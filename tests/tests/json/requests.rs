//! The accepted forms of requests: texts and `pretty` (J12). Spellings, numbers, ids and lists (J2 to J6,
//! J10, J11) are rows of the cases, and of the unit tests of the edge's `decode`.

use mesh_tests::{MeshClient, assert_problem, cases};

use super::with;

#[tokio::test]
async fn a_parameter_that_is_not_utf_8_is_refused_with_its_number() {
    let mesh = MeshClient::fixture().await;
    for (path, number) in [
        ("/api/v2/delegations?pagination.after=%FF", 10_028),
        ("/openapi.json?pretty=%FF", 10_015),
        ("/watch?read=%FF", 10_015),
        ("/watch?read=/api/v2/withdrawal/%25FF", 80_005),
    ] {
        assert_problem(&mesh.get(path).await, 400, 3, number);
    }
    let most_elements = format!("/api/v2/rewards/epoch/summaries?{}", "filter.assetIds=A&".repeat(50));
    for path in [
        "/api/v2/upgrade/proposals?approvedBy=%C3%A4%F0%9F%92%B0",
        "/%61ccounts",
        "/accounts?unknown=%FF&=%FF&&+",
        "/api/v2/deposits?assetId=Vote_1-x",
        &most_elements,
    ] {
        assert_eq!(mesh.get(path).await.status, 200, "{path}");
    }
    assert_problem(&mesh.get("/%FFaccounts").await, 404, 5, 10_000);
    for path in ["/transaction", "/transaction/check", "/transaction/raw", "/transaction/raw/check"] {
        for body in [&b"{\"tx\":\"\xff\"}"[..], b"{\"x\":\"\xff\"}", b"{\"\xff\":1}"] {
            assert_problem(&mesh.post_with(path, &[], body).await, 400, 3, 10_015);
        }
        let deep = format!("{}{}", "{\"x\":".repeat(100_000), "}".repeat(100_000));
        assert_problem(&mesh.post(path, &deep).await, 400, 3, 10_015);
        let long = "\x7f".repeat(100_000);
        for body in [format!("\"{long}\""), format!("{{\"{long}\":1,\"{long}\":2}}")] {
            let refused = mesh.post(path, &body).await;
            assert_problem(&refused, 400, 3, 10_015);
            assert!(refused.body.len() < 1000, "the refusal has {} bytes", refused.body.len());
        }
    }
}

#[tokio::test]
async fn j12_pretty_indents_the_answer_and_changes_nothing_else() {
    let mesh = MeshClient::fixture().await;
    for path in cases::answered().into_iter().map(|(_, path)| path).chain(["/limits".to_owned()]) {
        let plain = mesh.get(&path).await;
        assert!(!plain.text().contains('\n'), "{path} is indented unasked");
        let pretty = mesh.get(&with(&path, "pretty")).await;
        assert!(pretty.text().starts_with("{\n  \""), "{path}: {pretty:?}");
        let unspaced = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
        assert_eq!(unspaced(pretty.text()), unspaced(plain.text()), "{path}");
        assert_eq!(mesh.get(&with(&path, "pretty=true")).await.body, pretty.body, "{path}");
        for no in ["pretty=false", "pretty=0"] {
            assert_eq!(mesh.get(&with(&path, no)).await.body, plain.body, "{path}");
        }
    }
}
