//! More connections than the limit, and than there are file descriptors.

use std::{fs, net::Ipv4Addr, path::PathBuf, time::Duration};

use mesh_testbed::{Mesh, http1::Connection, retry};
use mesh_tests::{
    MeshClient, access::line, assert_has, assert_problem, fixture, link_with_edge_script, metric,
};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;
use tokio::time::timeout;

const TIME_LIMIT: Duration = Duration::from_secs(20);
const HEALTH: &str = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";

async fn connect(mesh: &Mesh, from: u8) -> Connection {
    Connection::open_from(&mesh.url(), Ipv4Addr::new(127, 0, 0, from).into()).await.unwrap()
}

/// Sends a request; `None` when the connection was rejected before it.
async fn send_request(connection: &mut Connection) -> Option<u16> {
    // The edge may have closed already.
    let _ = connection.send(HEALTH.as_bytes()).await;
    let answer = timeout(TIME_LIMIT, connection.answer(false)).await.expect("it is answered or closed");
    answer.ok().flatten().map(|answer| answer.status)
}

/// Asserts that a connection gets the 503 of a rejected one; returns the request id of that.
async fn assert_rejected(mut connection: Connection) -> String {
    let answer = timeout(TIME_LIMIT, connection.answer(false)).await.expect("it is told before its request");
    let answer = answer.unwrap().unwrap();
    assert_eq!(assert_problem(&answer, 503, 14, 10_000).message, "too many connections are open");
    assert_eq!((answer.header("retry-after"), answer.closes()), (Some("1"), true));
    assert_eq!(timeout(TIME_LIMIT, connection.rest()).await.expect("it is closed").unwrap(), b"");
    answer.header("x-request-id").unwrap().to_owned()
}

/// Connects until a connection is not rejected.
async fn connect_until_served(mesh: &Mesh, from: u8) -> Connection {
    retry(TIME_LIMIT, async || {
        let mut connection = connect(mesh, from).await;
        let is_served = send_request(&mut connection).await == Some(200);
        if is_served { Ok(connection) } else { Err("the place of a closed connection is not free") }
    })
    .await
}

#[tokio::test]
async fn connections_above_the_limit_get_503_and_one_address_cannot_take_all() {
    let (_database, mesh, _) =
        fixture::start(|setup| setup.env("MESH_EDGE_CONNECTIONS", "8").env("MESH_EDGE_ACCESS_LOG", "errors"))
            .await;
    let mut greedy = Vec::new();
    for _ in 0..4 {
        let mut connection = connect(&mesh, 2).await;
        assert_eq!(send_request(&mut connection).await, Some(200));
        greedy.push(connection);
    }
    let line = line(&mesh, &assert_rejected(connect(&mesh, 2).await).await).await;
    let because = "too many connections: address";
    assert_has(&line, &json!({"status": 503, "client": "127.0.0.2", "because": because}));
    let mut others = Vec::new();
    for from in 3..7 {
        let mut connection = connect(&mesh, from).await;
        assert_eq!(send_request(&mut connection).await, Some(200), "127.0.0.{from}");
        others.push(connection);
    }
    assert_rejected(connect(&mesh, 7).await).await;
    let refused = async |reason| {
        metric(&mesh, "edge", &format!("mesh_edge_connections_refused_total{{reason={reason:?}}}")).await
    };
    assert_eq!((refused("address").await, refused("full").await), (1, 1));
    for connection in greedy.iter_mut().chain(&mut others) {
        assert_eq!(send_request(connection).await, Some(200), "those that are open are served");
    }
    others.pop();
    connect_until_served(&mesh, 7).await;
}

#[tokio::test]
async fn with_few_file_descriptors_new_connections_are_refused_and_open_ones_served_without_a_busy_loop() {
    let (database, folder) = (fixture::database().await, tempfile::tempdir().unwrap());
    link_with_edge_script(folder.path(), |edge| format!("ulimit -n 256\nexec {edge:?}"));
    let setup = Mesh::configure(&database).binaries(folder.path());
    let mesh = setup.env("MESH_EDGE_TRUSTED_PROXIES", "127.0.0.0/8").start().await;
    let limit = MeshClient::new(&mesh).get("/limits").await.json()["rate"]["connections"].as_u64().unwrap();
    assert_eq!(limit, 128);
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..400 {
        let mut connection = connect(&mesh, 2).await;
        match send_request(&mut connection).await {
            Some(200) => open.push(connection),
            // A connection whose request crossed the 503 may have lost the answer by a reset.
            Some(503) | None => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    // The client that read `/limits` keeps one connection.
    assert!((limit - 8..=limit).contains(&(open.len() as u64)) && refused >= 272, "{} {refused}", open.len());
    let cpu = async || mesh.service("edge").metric("process_cpu_time_seconds_total ").await;
    let before = cpu().await;
    assert!(before > 0.0, "the metric is served");
    timeout(Duration::from_secs(1), open[0].rest()).await.expect_err("an open connection is closed");
    let used = cpu().await - before;
    assert!(used < 0.5, "it spins: {used} s of CPU in about a second");
    for connection in &mut open {
        assert_eq!(send_request(connection).await, Some(200), "those that are open are served");
    }
    assert_eq!(mesh.service("edge").admin("/livez").await.status, 200);
    drop(open);
    connect_until_served(&mesh, 2).await;
}

fn open_files(pid: u32) -> Vec<u64> {
    let entries = fs::read_dir(PathBuf::from(format!("/proc/{pid}/fd"))).unwrap();
    entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).collect()
}

#[tokio::test]
async fn without_a_free_file_descriptor_a_connection_is_still_refused_properly() {
    let (_database, mesh, _) = fixture::start(|setup| setup).await;
    let mut open = connect(&mesh, 2).await;
    assert_eq!(send_request(&mut open).await, Some(200));
    let pid = mesh.service("edge").pid();
    let most = open_files(pid).into_iter().max().unwrap() + 1;
    let set = |current| {
        // The soft limit of this process is inherited by its children.
        let limit = Rlimit { current: Some(current), maximum: getrlimit(Resource::Nofile).maximum };
        prlimit(Some(Pid::from_raw(pid.cast_signed()).unwrap()), Resource::Nofile, limit).unwrap()
    };
    let before = set(most).current.unwrap();
    let mut others = Vec::new();
    // The kernel gives the lowest free descriptor first.
    for _ in 0..most {
        let mut connection = connect(&mesh, 2).await;
        match send_request(&mut connection).await {
            Some(200) => others.push(connection),
            _ => break,
        }
    }
    assert!(others.len() < most as usize, "it has more files than it may");
    for _ in 0..20 {
        assert_rejected(connect(&mesh, 2).await).await;
    }
    assert_eq!(send_request(&mut open).await, Some(200));
    set(before);
    connect_until_served(&mesh, 2).await;
    assert!(metric(&mesh, "edge", "mesh_edge_connections_refused_total{reason=\"files\"}").await >= 20);
}
