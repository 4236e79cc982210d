//! Long answers that clients do not read: the edge holds a limited number of bytes of them, and of each client's.

use std::time::Duration;

use mesh_testbed::{
    eventually,
    http1::Connection,
    http2::{self, AUTHORITY, Frame, HEADERS, RST_STREAM, get_request},
};
use mesh_tests::{assert_problem, fixture};

use tokio::net::TcpStream;

use crate::limits::get_for;

const MANY_TRADES: &str = "INSERT INTO trades
    SELECT (jsonb_populate_record(NULL::trades, to_jsonb(trade) || jsonb_build_object('synthetic_time',
        trade.synthetic_time + number * interval '1 us'))).*
    FROM (SELECT * FROM trades ORDER BY synthetic_time DESC LIMIT 1) AS trade, generate_series(1, 2000) AS number";

/// The bytes that the edge may hold, and about those of a page.
const MOST: &str = "1000000";
const PAGE_BYTES: usize = 400_000;

fn page(rows: usize) -> String {
    format!("/api/v2/trades?pagination.first={rows}")
}

#[tokio::test]
async fn unread_answers_take_a_part_of_the_memory_and_leave_the_rest_to_others() {
    let (database, mesh, mesh_client) = fixture::start(|setup| {
        let setup = setup.env("MESH_EDGE_ANSWER_BYTES", MOST).env("MESH_EDGE_MAX_BODY_BYTES", "100000");
        let setup = setup.env(mesh_tests::NO_CACHE.0, mesh_tests::NO_CACHE.1);
        setup.env("MESH_EDGE_TRUSTED_PROXIES", "127.0.0.1")
    })
    .await;
    database.connect().await.batch_execute(MANY_TRADES).await.unwrap();
    let length = get_for(&mesh_client, "203.0.113.9", &page(100)).await.body.len();
    let rows = 100 * PAGE_BYTES / length;
    let mut unread = Vec::new();
    for (client, more, status) in [
        ("203.0.113.1", 0, 200),
        ("203.0.113.1", 1, 503),
        ("203.0.113.2", 2, 200),
        ("203.0.113.3", 3, 503),
        ("203.0.113.1", 1, 503),
    ] {
        let mut connection = Connection::open_narrow(&mesh.url(), 16 << 10).await.unwrap();
        let path = page(rows + more);
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {client}\r\n\r\n");
        connection.send(request.as_bytes()).await.unwrap();
        let (head, stream) = connection.head_then_stream().await.unwrap();
        assert_eq!(head.status, status, "{client} {path}");
        unread.extend((status == 200).then_some(stream));
    }
    let refused = get_for(&mesh_client, "203.0.113.3", &page(rows)).await;
    assert_problem(&refused, 503, 14, 10_000);
    assert_eq!(refused.header("retry-after"), Some("1"));
    let short = get_for(&mesh_client, "203.0.113.1", &page(10)).await;
    assert_eq!(short.status, 200, "short ones are not counted");
    drop(unread);
    let is_served = async || get_for(&mesh_client, "203.0.113.1", &page(rows)).await.status == 200;
    eventually(Duration::from_secs(30), "answers of clients that have gone still count", is_served).await;

    // Of short answers, a client of HTTP/2 leaves an eighth of the bytes.
    let rows = 100 * 30_000 / length;
    let stream = TcpStream::connect(mesh.url().trim_start_matches("http://")).await.unwrap();
    // Its window takes nothing.
    let mut client = http2::Connection::over(stream, &[0, 4, 0, 0, 0, 0]).await.unwrap();
    let mut answered = Vec::new();
    for number in 0..11 {
        let stream = 2 * number + 1;
        if number == 8 {
            for stream in [1, 3, 5, 7] {
                let payload = vec![0, 0, 0, 8];
                client.send(&Frame { kind: RST_STREAM, flags: 0, stream, payload }).await.unwrap();
            }
        }
        let path = page(rows + number as usize);
        client.send(&Frame::request(stream, &get_request(&path, &[(AUTHORITY, "x")]))).await.unwrap();
        let head = client.next(HEADERS).await.unwrap();
        // The first field is the status: 200 is in the static table.
        answered.push(head.payload[0] == 0x88);
    }
    assert_eq!(answered, [&[true; 4][..], &[false; 4], &[true; 3]].concat());
    assert_eq!(mesh_client.get(&page(rows)).await.status, 200, "over HTTP/1.1 each connection has one");
}
