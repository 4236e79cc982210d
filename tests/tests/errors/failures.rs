//! Errors that are not the client's fault: something is unavailable, late, or broken. The answer has
//! `Retry-After` or nothing more than the operation's application number. A client's faults come first (2.3).

use std::time::{Duration, Instant};

use mesh_testbed::{Answer, Database, Mesh, Signal, nats};
use mesh_tests::{
    MARKET, MeshClient, NO_CACHE, ORACLE_SPEC, ORDER, PARTY, ProxiedServer, Shared, TableLock, UNKNOWN_ID,
    WITHDRAWAL, assert_problem, fixture,
};

/// Time limit for an `Unavailable` answer.
const TIME_LIMIT: Duration = Duration::from_millis(1500);

/// An operation, its application number for a failed query, and a table that it reads.
fn reads() -> Vec<(String, i64, &'static str)> {
    vec![
        ("/api/v2/upgrade/proposals".to_owned(), 330_001, "protocol_upgrade_proposals_current"),
        (format!("/api/v2/oracle/spec/{ORACLE_SPEC}"), 190_001, "oracle_specs"),
        (format!("/api/v2/withdrawal/{WITHDRAWAL}"), 150_001, "withdrawals"),
        ("/accounts".to_owned(), 80006, "accounts"),
        (format!("/api/v2/candle?candleId=trades_candle_1_hour_{MARKET}"), 60001, "trades_candle"),
        ("/api/v2/rewards/epoch/summaries".to_owned(), 140_001, "rewards"),
        ("/api/v2/delegations".to_owned(), 130_001, "delegations_current"),
        ("/api/v2/markets".to_owned(), 40001, "markets_with_prices"),
        ("/api/v2/assets".to_owned(), 110_001, "assets_current"),
        ("/api/v2/trades".to_owned(), 30001, "trades"),
        ("/api/v2/positions".to_owned(), 70001, "positions_current"),
        ("/api/v2/orders".to_owned(), 20001, "orders_current"),
        (format!("/api/v2/order/{ORDER}"), 20001, "orders"),
        (format!("/api/v2/market/{MARKET}/depth"), 40001, "orders_current"),
        ("/api/v2/deposits".to_owned(), 160_001, "deposits_current"),
        ("/api/v2/withdrawals".to_owned(), 150_001, "withdrawals_current"),
        (format!("/api/v2/party/{PARTY}/portfolio"), 70001, "positions_current"),
        ("/api/v2/network/limits".to_owned(), 100_001, "network_limits"),
        ("/blockchain/height".to_owned(), 10000, "network_parameters_current"),
        ("/api/v2/upgrade/status".to_owned(), 10000, "node_state"),
    ]
}

async fn promptly(mesh: &MeshClient, path: &str, at_most: Duration) -> Answer {
    let started = Instant::now();
    let answer = mesh.get(path).await;
    assert!(started.elapsed() < at_most, "{path} took {:?}: {answer:?}", started.elapsed());
    answer
}

/// Runs a test on a mesh whose database is behind a proxy that the test may cut or stall, and restores.
fn with_proxied_database(test: impl AsyncFnOnce(&ProxiedServer, &Mesh)) {
    static MESH: Shared<(Database, ProxiedServer, Mesh)> = Shared::new();
    let start = async || {
        let database = fixture::database().await;
        let proxied_server = ProxiedServer::start(database.url()).await;
        let setup = Mesh::configure(&database).env("MESH_DATABASE_URL", proxied_server.url());
        let setup = setup.env("MESH_QUERY_TIMEOUT_MS", "500").env(NO_CACHE.0, NO_CACHE.1);
        let mesh = setup.start().await;
        (database, proxied_server, mesh)
    };
    MESH.run(start, async |(_, proxied_server, mesh)| {
        proxied_server.restore();
        for (path, ..) in reads() {
            MeshClient::new(mesh).await_status(&path, 200).await;
        }
        test(proxied_server, mesh).await;
    });
}

#[tokio::test]
async fn a_store_without_blocks_has_no_limits_and_no_height() {
    let mesh_client = MeshClient::empty().await;
    assert_problem(&mesh_client.get("/api/v2/network/limits").await, 404, 5, 100_001);
    assert_problem(&mesh_client.get("/blockchain/height").await, 503, 14, 90001);
}

#[test]
fn without_the_database_reads_are_unavailable_and_recover_with_it() {
    with_proxied_database(async |proxied_server, mesh| {
        let mesh_client = MeshClient::new(mesh);
        proxied_server.cut();
        for (path, ..) in reads() {
            assert_problem(&promptly(&mesh_client, &path, TIME_LIMIT).await, 503, 14, 10000);
        }
        let info = mesh_client.get("/api/v2/info").await;
        assert_eq!(info.status, 200, "it is answered without the database");
        assert_eq!(mesh.service("query").admin("/readyz").await.status, 503);
        assert_eq!(mesh.service("query").admin("/livez").await.status, 200);
        proxied_server.restore();
        for (path, ..) in reads() {
            mesh_client.await_status(&path, 200).await;
        }
    });
}

#[test]
fn every_check_of_the_request_comes_before_the_store() {
    with_proxied_database(async |proxied_database, mesh| {
        let mesh_client = MeshClient::new(mesh);
        proxied_database.cut();
        let candles = format!("/api/v2/candle?candleId=trades_candle_1_hour_{MARKET}");
        for (path, number) in [
            (format!("{candles}&fromTimestamp=2&toTimestamp=1"), 10042),
            (format!("{candles}&pagination.first=0"), 10028),
            ("/api/v2/rewards/epoch/summaries?filter.fromEpoch=2&filter.toEpoch=1".to_owned(), 10029),
            ("/api/v2/withdrawal/x".to_owned(), 80005),
        ] {
            assert_problem(&mesh_client.get(&path).await, 400, 3, number);
        }
        assert_problem(&mesh_client.get(&format!("/api/v2/withdrawal/{UNKNOWN_ID}")).await, 503, 14, 10000);
    });
}

#[test]
fn a_stalled_database_gives_deadline_exceeded_and_then_unavailable() {
    with_proxied_database(async |proxied_server, mesh| {
        let mesh_client = MeshClient::new(mesh);
        proxied_server.stall();
        let mut is_away = false;
        for (path, ..) in reads() {
            let answer = promptly(&mesh_client, &path, TIME_LIMIT).await;
            is_away |= answer.status == 503;
            let (status, code) = if is_away { (503, 14) } else { (504, 4) };
            assert_problem(&answer, status, code, 10000);
        }
        assert!(is_away, "after three seconds no read waits for the store");
        proxied_server.restore();
        for (path, ..) in reads() {
            mesh_client.await_status(&path, 200).await;
        }
    });
}

#[tokio::test]
async fn a_slow_query_gives_deadline_exceeded() {
    let (database, _mesh, mesh_client) =
        fixture::start(|setup| setup.env("MESH_QUERY_TIMEOUT_MS", "300")).await;
    for (path, _, table) in reads() {
        let locked = TableLock::acquire(&database, table).await;
        assert_problem(&promptly(&mesh_client, &path, TIME_LIMIT).await, 504, 4, 10000);
        locked.release().await;
        mesh_client.await_status(&path, 200).await;
    }
}

#[tokio::test]
async fn a_frozen_service_gives_deadline_exceeded_and_answers_when_resumed() {
    let (_database, mesh, mesh_client) =
        fixture::start(|setup| setup.env("MESH_QUERY_TIMEOUT_MS", "500")).await;
    let deadline = Instant::now() + Duration::from_secs(20);
    // Each attempt asks what no earlier one did, since the edge would answer that from its cache.
    for first in 1.. {
        let path = format!("/api/v2/delegations?pagination.first={first}");
        mesh.service("query").signal(Signal::STOP);
        let answer = promptly(&mesh_client, &path, TIME_LIMIT).await;
        mesh.service("query").signal(Signal::CONT);
        mesh_client.await_status("/accounts", 200).await;
        // An edge that has no announcement of a service answers `Unavailable`, not `DeadlineExceeded`. Woken,
        // the service announces itself.
        if answer.status != 503 {
            assert_problem(&answer, 504, 4, 10000);
            break;
        }
        assert_problem(&answer, 503, 14, 10000);
        assert!(Instant::now() < deadline, "the edge does not receive the heartbeats of a live replica");
    }
}

#[tokio::test]
async fn without_the_bus_everything_is_unavailable_at_once_and_recovers_with_it() {
    let database = fixture::database().await;
    let proxied_server = ProxiedServer::start(nats().await.url()).await;
    // A request that is in flight on the bus when it breaks is lost and ends with its deadline.
    let setup = Mesh::configure(&database).env("MESH_BUS_URL", proxied_server.url());
    let mesh = setup.env("MESH_QUERY_TIMEOUT_MS", "1000").start().await;
    let mesh_client = MeshClient::new(&mesh);
    proxied_server.cut();
    mesh_client.await_status("/accounts", 503).await;
    assert_problem(&promptly(&mesh_client, "/accounts", TIME_LIMIT).await, 503, 14, 10000);
    assert_problem(&promptly(&mesh_client, "/api/v2/info", TIME_LIMIT).await, 503, 14, 10000);
    assert_problem(&mesh_client.get("/accounts?party=x").await, 400, 3, 10013);
    assert_eq!(mesh.service("edge").admin("/readyz").await.status, 503);
    proxied_server.restore();
    mesh_client.await_status("/accounts", 200).await;
    mesh_client.await_status("/api/v2/info", 200).await;
}

#[tokio::test]
async fn a_broken_store_is_an_internal_error_that_reveals_only_its_number() {
    let (database, mesh, mesh_client) = fixture::start(|setup| setup).await;
    let client = database.connect().await;
    let secrets: Vec<String> = database.url().split(['/', ':', '@', '?']).map(str::to_owned).collect();
    for (turn, (path, number, table)) in reads().into_iter().enumerate() {
        let id = format!("broken.{turn}.");
        // An operation before may have lost it.
        let lose = format!("ALTER TABLE IF EXISTS {table} RENAME TO lost_{turn}");
        client.batch_execute(&lose).await.expect("the table or view is there");
        let answer = mesh_client.get_with(&path, "x-request-id", &id).await;
        let refusal = assert_problem(&answer, 500, 13, number);
        let lower_case_text = answer.text().to_lowercase();
        for leak in [
            table, "select", "relation", "does not exist", "42p01", "postgres", "error: ", ".sql",
            "127.0.0.1",
        ] {
            let is_told = lower_case_text.replace("internal error", "").contains(leak);
            assert!(!is_told, "{path} leaks {leak}: {answer:?}");
        }
        // Compared by whole words: a port's digits may be part of an application number.
        let numbers: Vec<&str> = lower_case_text.split(|letter: char| !letter.is_ascii_digit()).collect();
        let is_number = |secret: &str| secret.bytes().all(|byte| byte.is_ascii_digit());
        let is_said = |secret: &str| {
            if is_number(secret) { numbers.contains(&secret) } else { lower_case_text.contains(secret) }
        };
        for secret in secrets.iter().filter(|part| part.len() > 3) {
            assert!(!is_said(secret), "{path} leaks a part of the database's address: {answer:?}");
        }
        assert!(refusal.inner.is_empty(), "{refusal:?}");
        let service = if number == 10000 || number == 100_001 { "node-info" } else { "query" };
        let log = mesh.service(service).log();
        let logged = |line: &&str| line.contains(&id) && line.contains("ERROR");
        let line =
            log.lines().find(logged).unwrap_or_else(|| panic!("{service} did not log the failure of {path}"));
        assert!(line.contains(table), "the log says why: {line}");
    }
}
