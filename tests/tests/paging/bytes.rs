//! The size of answers in bytes (P5, 4.9): clients of gRPC accept messages of 4 MiB.

use mesh_testbed::{Database, Mesh};
use mesh_tests::{Call, MeshClient, Rpc, assert_problem, assert_refused};
use serde_json::Value;

/// A thousand proposals of a hundred approvers each: 6.66 MB of protobuf.
const PROPOSALS: &str = "INSERT INTO protocol_upgrade_proposals
    SELECT n, 'v1', ARRAY(SELECT lpad(to_hex(1000 * n + key), 64, '0') FROM generate_series(1, 100) AS key),
        'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING', 'tx', '2023-01-01 00:00:00+00'
    FROM generate_series(1, 1000) AS n";

/// 3 MiB of rows in protobuf, and what one more row has.
const ROWS: std::ops::RangeInclusive<usize> = 465..=476;

#[tokio::test]
async fn a_page_is_cut_at_3_mib_in_either_direction() {
    let database = Database::fresh().await;
    database.connect().await.batch_execute(PROPOSALS).await.unwrap();
    let mesh = Mesh::start(&database).await;
    let (mesh_client, rpc) = (MeshClient::new(&mesh), Rpc::connect(&mesh).await);
    for is_forward in [true, false] {
        let (size, position, end) =
            if is_forward { ("first", "after", "endCursor") } else { ("last", "before", "startCursor") };
        let (mut walked, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let query = format!("pagination.{size}=1000&pagination.{position}={cursor}");
            let path = format!("/api/v2/upgrade/proposals?{query}");
            let answer = mesh_client.get(&path).await.json();
            let page = &answer["protocolUpgradeProposals"];
            pages += 1;
            let called = Call::from_path(&path).unwrap();
            rpc.call(&called).await.expect("a client of gRPC takes it");
            let height = |edge: &Value| edge["node"]["upgradeBlockHeight"].as_str().unwrap().to_owned();
            let mut heights: Vec<_> = page["edges"].as_array().unwrap().iter().map(height).collect();
            let info = &page["pageInfo"];
            let [next, previous] =
                ["hasNextPage", "hasPreviousPage"].map(|flag| info[flag].as_bool().unwrap());
            let (has_more, has_less) = if is_forward { (next, previous) } else { (previous, next) };
            assert_eq!(has_less, pages > 1);
            cursor = info[end].as_str().unwrap().to_owned();
            if has_more {
                assert!(ROWS.contains(&heights.len()), "{} rows", heights.len());
            }
            if is_forward {
                walked.append(&mut heights);
            } else {
                heights.append(&mut walked);
                walked = heights;
            }
            if !has_more {
                break;
            }
        }
        let all: Vec<_> = (1..=1000).rev().map(|height: i32| height.to_string()).collect();
        assert_eq!((walked, pages), (all, 3), "forward: {is_forward}");
    }
}

/// Two hundred trades of 200 kB each, 40 MB in the database for a page of 3 MiB, and as many live orders of a party.
const LONG_ROWS: &str = "INSERT INTO trades
    SELECT time, 'tx', time, 0, n, 'market', 5, 7, 'b', 's', 1, repeat('x', 200000), 'so', 1
    FROM generate_series(1, 200) AS n, LATERAL (SELECT to_timestamp(1687255200 + n) AS time) AS times;
    INSERT INTO orders_current
    SELECT n::text, block_time, 'market', repeat('a', 64), 1, 5, 7, 7, 1, 1, 1, buy_order, NULL, 1, 0, NULL, NULL, NULL,
        block_time, NULL, NULL, false, false, block_time, n, true
    FROM (SELECT row_number() OVER () AS n, * FROM trades) AS numbered";

/// The kilobytes of memory that a service has used at most.
fn most_memory_kb(mesh: &Mesh, service: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", mesh.service(service).pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_page_of_long_rows_reads_few_more_than_it_has() {
    let database = Database::fresh().await;
    database.connect().await.batch_execute(LONG_ROWS).await.unwrap();
    let mesh = Mesh::start(&database).await;
    let mesh_client = MeshClient::new(&mesh);
    for (size, position, end, more) in
        [("first", "after", "endCursor", "hasNextPage"), ("last", "before", "startCursor", "hasPreviousPage")]
    {
        let (mut walked, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/api/v2/trades?pagination.{size}=1000&pagination.{position}={cursor}");
            let page = &mesh_client.get(&path).await.json()["trades"];
            let edges = page["edges"].as_array().unwrap().iter();
            let mut ids: Vec<String> = edges.map(|edge| edge["cursor"].to_string()).collect();
            if size == "last" {
                ids.reverse();
            }
            walked.append(&mut ids);
            cursor = page["pageInfo"][end].as_str().unwrap().to_owned();
            if page["pageInfo"][more] == false {
                break;
            }
            assert!(walked.len() % 15 == 0, "{} rows of 200 kB in pages of 3 MiB", walked.len());
        }
        walked.dedup();
        assert_eq!(walked.len(), 200, "{size}");
    }
    let portfolio = mesh_client.get(&format!("/api/v2/party/{}/portfolio", "a".repeat(64))).await;
    assert_problem(&portfolio, 400, 9, 70_001);
    let most = most_memory_kb(&mesh, "query");
    assert!(most < 150_000, "a page of 40 MB in the database took {most} kB");
}

#[tokio::test]
async fn all_accounts_above_3_mib_are_refused_over_grpc_and_can_be_paged() {
    let database = Database::fresh().await;
    let accounts = "INSERT INTO accounts (id, party_id, asset_id, market_id, type, tx_hash, block_time)
        SELECT n::text, lpad(to_hex(n), 64, '0'), repeat('f', 64), repeat('e', 64), 3, 'tx', '2023-01-01 00:00:00+00'
        FROM generate_series(1, 20000) AS n";
    database.connect().await.batch_execute(accounts).await.unwrap();
    let mesh = Mesh::start(&database).await;
    let rpc = Rpc::connect(&mesh).await;
    let call = async |path: &str| rpc.call(&Call::from_path(path).unwrap()).await;
    assert_refused(call("/accounts").await, 9, 80_006);
    assert!(call("/accounts?pagination.first=5000").await.is_ok());
    assert!(call(&format!("/accounts?party={:064x}", 7)).await.is_ok());
    let whole = MeshClient::new(&mesh).get("/accounts").await;
    assert_eq!(whole.json()["accounts"].as_array().unwrap().len(), 20_000, "over HTTP");
}
