//! `/limits` shows the configured limits.

use mesh_tests::{assert_problem, fixture};

use crate::openapi::Document;

#[tokio::test]
async fn configured_limits_are_shown_and_enforced() {
    let (database, _mesh, mesh_client) = fixture::start(|setup| {
        let setup = setup.env("MESH_PAGE_DEFAULT", "1").env("MESH_PAGE_MAX", "2");
        let setup = setup.env("MESH_ACCOUNTS_MAX_ROWS", "5").env("MESH_EDGE_MAX_BODY_BYTES", "100");
        setup.env("MESH_QUERY_TIMEOUT_MS", "7000")
    })
    .await;
    let document = Document::fetch(&mesh_client).await;
    let answer = mesh_client.get("/limits").await;
    assert_eq!(document.complaint(&document.operation("Limits"), &answer), None);
    let limits = answer.json();
    assert_eq!(limits["rows"]["pageDefault"], 1);
    assert_eq!(limits["rows"]["pageGreatest"], 2);
    assert_eq!(limits["rows"]["accountsGreatest"], 5);
    assert_eq!(limits["request"]["bodyBytes"], 100);
    assert_eq!(limits["time"]["queryMs"], 7000);

    let refusal = assert_problem(&mesh_client.get("/accounts").await, 400, 9, 80_006);
    assert!(refusal.message.contains("filter"), "{refusal:?}");
    assert_eq!(mesh_client.get("/accounts?party=network").await.status, 200);
    // Of the six accounts one is deleted: as many as the limit are listed.
    let delete = "DELETE FROM accounts WHERE id = (SELECT min(id) FROM accounts)";
    assert_eq!(database.connect().await.execute(delete, &[]).await.unwrap(), 1);
    mesh_client.await_status("/accounts", 200).await;
    let post = async |length: usize| mesh_client.post("/transaction/check", &" ".repeat(length)).await.status;
    assert_eq!((post(100).await, post(101).await), (400, 413));
}
