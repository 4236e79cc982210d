//! The workload as a process on a real bus: it seals as blocks arrive, and serves the history without its
//! database.

use std::time::Duration;

use bytes::Bytes;
use mesh_bus::{AskOptions, Bus, Encoding, PullOptions, permissions::EDGE};
use mesh_export::Sealing;
use mesh_testbed::{Service, nats, retry};
use proto_msgs::v2::{ExportNetworkHistoryRequest, ListAllNetworkHistorySegmentsRequest, Table};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
};

use crate::fixture::Fixture;

const SOON: Duration = Duration::from_secs(30);

async fn start(fixture: &Fixture) -> Service {
    Service::configure("export")
        .program(env!("CARGO_BIN_EXE_export"))
        .database(&fixture.database)
        .env("MESH_BUS_PREFIX", fixture.database.name())
        .env("MESH_HISTORY_URL", fixture.folder.path().to_str().unwrap())
        .env("MESH_HISTORY_INTERVAL_BLOCKS", "10")
        .env("MESH_HISTORY_REFRESH_MS", "60000")
        .start()
        .await
}

async fn connect(fixture: &Fixture) -> Bus {
    let bus = Bus::connect(nats().await.config(EDGE, fixture.database.name())).await.unwrap();
    bus.until_connected().await;
    bus
}

async fn await_ends(bus: &Bus, ends: &[i64]) {
    retry(SOON, async || {
        let reply = bus.ask_typed(&ListAllNetworkHistorySegmentsRequest {}, SOON).await.unwrap().reply;
        let seen: Vec<i64> = reply.segments.iter().map(|segment| segment.to_height).collect();
        if seen == ends { Ok(()) } else { Err(format!("{seen:?}, not {ends:?}")) }
    })
    .await;
}

async fn download(bus: &Bus, to: i64) -> Vec<u8> {
    let request = ExportNetworkHistoryRequest {
        from_block: Some(1),
        to_block: Some(to),
        table: Table::Blocks.into(),
        ..Default::default()
    };
    let request = Bytes::from(prost::Message::encode_to_vec(&request));
    let target = std::sync::Arc::new(bus.target("export", "ExportNetworkHistory"));
    let (encoding, timeout, request_id) = (Encoding::default(), SOON, "r".to_owned());
    let options =
        AskOptions { encoding, timeout, request_id, client: 0, traceparent: None, repeatable: true };
    let opened = bus.open(&target, request.clone(), 0, &options).await.unwrap();
    let mut pulled = bus.pull(&target, request, &opened, PullOptions::default()).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = pulled.next().await {
        bytes.extend_from_slice(&piece.unwrap());
    }
    assert_eq!(Some(bytes.len() as u64), opened.info.total_bytes);
    bytes
}

#[actix::test]
async fn segments_are_sealed_as_blocks_come_and_stay_when_the_database_goes() {
    let fixture = Fixture::blocks(25).await;
    let (one, two, bus) = tokio::join!(start(&fixture), start(&fixture), connect(&fixture));
    await_ends(&bus, &[20, 10]).await;
    let before = download(&bus, 20).await;
    fixture.write_blocks(26..=30).await;
    // Both replicas list only once a minute, but refresh when a sealer announces a segment.
    for replica in [&one, &two] {
        replica.until_metric("mesh_history_height ", |height| height == 30.0).await;
    }
    let made = "mesh_history_seal_duration_seconds_count ";
    assert_eq!(one.metric(made).await + two.metric(made).await, 3.0, "each was made once");
    assert!(one.stop().await.success());

    fixture.database.drop_now().await;
    let late = start(&fixture).await;
    two.kill().await;
    await_ends(&bus, &[30, 20, 10]).await;
    assert!(download(&bus, 20).await == before, "another replica, without a database, gives the same bytes");
    assert!(late.stop().await.success());
}

/// An object store without objects, until the test ends.
async fn empty_bucket() -> String {
    const EMPTY: &str = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let reply =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{EMPTY}", EMPTY.len());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let mut client = BufReader::new(client);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && client.read_line(&mut head).await.unwrap() > 0 {}
            client.write_all(reply.as_bytes()).await.unwrap();
        }
    });
    format!("http://{address}")
}

/// The variables of a replica that keeps its segments in an object store, which is empty.
async fn empty_store() -> [(&'static str, String); 5] {
    [
        ("MESH_HISTORY_URL", "s3://bucket/history".to_owned()),
        ("AWS_ENDPOINT_URL", empty_bucket().await),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ]
}

#[tokio::test]
async fn an_object_store_on_this_machine_is_reached_without_a_proxy() {
    let fixture = Fixture::blocks(0).await;
    let mut setup = Service::configure("export")
        .program(env!("CARGO_BIN_EXE_export"))
        .database(&fixture.database)
        .env("MESH_BUS_PREFIX", fixture.database.name());
    for (name, value) in empty_store().await {
        setup = setup.env(name, value);
    }
    // It is ready when it has listed the bucket.
    setup.env("http_proxy", "http://127.0.0.1:9").start().await;
}

#[tokio::test]
async fn a_command_seals_into_the_object_store_that_its_variables_name() {
    mesh_chassis::install_tls_provider();
    let fixture = Fixture::blocks(0).await;
    let database = ("MESH_DATABASE_URL", fixture.database.url().to_owned());
    let variables = empty_store().await.into_iter().chain([database]);
    let sealing = Sealing::configured(variables.map(|(name, value)| (name.to_owned(), value))).unwrap();
    assert!(sealing.fault().await.unwrap().is_none());
}

#[actix::test]
async fn a_gap_is_not_sealed_and_what_is_sealed_is_served_beside_files_of_another_chain() {
    let fixture = Fixture::blocks(10).await;
    let segments = fixture.folder.path().join("segments");
    std::fs::create_dir(&segments).unwrap();
    std::fs::write(segments.join("other-0002-1-1-10.zip"), "").unwrap();
    fixture.write_blocks(12..=20).await;
    let (export, bus) = tokio::join!(start(&fixture), connect(&fixture));
    export.until_metric("mesh_seal_refused ", |refused| refused == 1.0).await;
    await_ends(&bus, &[10]).await;
    assert!(!download(&bus, 10).await.is_empty());
    assert_eq!(export.admin("/readyz").await.status, 200);
    assert!(export.admin("/metrics").await.text().contains("\nmesh_history_segments_unreadable 0\n"));
    fixture.write_blocks(11..=11).await;
    await_ends(&bus, &[20, 10]).await;
    export.until_metric("mesh_seal_refused ", |refused| refused == 0.0).await;
    assert!(export.stop().await.success());
}

#[test]
fn a_start_that_fails_while_the_database_is_unreachable_ends_without_a_panic() {
    let (occupied, folder) =
        (std::net::TcpListener::bind("127.0.0.1:0").unwrap(), tempfile::tempdir().unwrap());
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_export"))
        .env("MESH_DATABASE_URL", "postgres://mesh:mesh@127.0.0.1:9/mesh")
        .env("MESH_BUS_URL", "nats://127.0.0.1:9")
        .env("MESH_HISTORY_URL", folder.path())
        .env("MESH_ADMIN_LISTEN", occupied.local_addr().unwrap().to_string())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("MESH_ADMIN_LISTEN") && !printed.contains("panicked"), "{printed}");
}

#[actix::test]
async fn a_missing_segment_between_two_others_is_logged_and_counted() {
    let fixture = Fixture::blocks(30).await;
    let (export, bus) = tokio::join!(start(&fixture), connect(&fixture));
    await_ends(&bus, &[30, 20, 10]).await;
    assert!(export.stop().await.success());
    std::fs::remove_file(fixture.folder.path().join("segments/test-1-1-11-20.zip")).unwrap();
    let export = start(&fixture).await;
    export.until_metric("mesh_history_segments_unreadable ", |faults| faults == 1.0).await;
    retry(SOON, async || {
        let log = export.log();
        if log.contains("no segment holds the heights 11 to 20") { Ok(()) } else { Err(log) }
    })
    .await;
    assert!(export.stop().await.success());
}

#[actix::test]
async fn a_statement_that_fails_counts_as_a_failure_to_seal() {
    let fixture = Fixture::blocks(25).await;
    let client = fixture.database.connect().await;
    client.batch_execute("ALTER TABLE blocks RENAME COLUMN height TO other").await.unwrap();
    let export = start(&fixture).await;
    export.until_metric("mesh_history_seal_failures_total ", |failures| failures > 0.0).await;
    assert!(export.stop().await.success());
}
