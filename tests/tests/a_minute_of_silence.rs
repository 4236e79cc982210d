//! What takes long because clients and the store are silent, all at the same time. In a file whose name comes first:
//! tests begin in the order of their names, and this one waits for more than a minute while others run.

use std::time::{Duration, Instant};

use mesh_testbed::http2::{ACCEPT, AUTHORITY, Connection, Frame, HEADERS, get_request};
use mesh_tests::{Event, Events, HANDSHAKE, WebSocket, raw};
use tokio_tungstenite::tungstenite::Message;

use crate::watch::{LIMITS, start, withdrawal, write_block};

/// Longest time between two signs of life of a stream (W4).
const SIGN_WITHIN: Duration = Duration::from_secs(15);

#[tokio::test]
async fn silent_connections_have_signs_of_life_and_end_after_a_minute_without_a_pong() {
    tokio::join!(
        a_client_that_answers_no_ping_is_closed_after_a_minute(),
        a_quiet_connection_has_pings_and_signs_of_life(),
        late_rows_are_sent_without_a_new_block_and_an_idle_stream_sends_heartbeats(),
        an_http_2_client_may_pause_for_a_minute_while_an_answer_is_open(),
    );
}

async fn a_client_that_answers_no_ping_is_closed_after_a_minute() {
    let (_database, mesh, _client) = start(&[]).await;
    let mut connection = raw::begin(&mesh.url(), HANDSHAKE).await;
    assert_eq!(connection.head().await.unwrap().unwrap().0.status, 101);
    let opened = Instant::now();
    let rest = tokio::time::timeout(Duration::from_secs(100), connection.rest()).await;
    let rest = rest.expect("it stays open").unwrap();
    assert!(rest.starts_with(b"\x89\0\x89\0\x89\0"), "{rest:?}");
    assert_eq!(rest.windows(2).filter(|two| two == b"\x03\xf3").count(), 1, "1011: {rest:?}");
    let elapsed = opened.elapsed().as_secs();
    assert!((70..90).contains(&elapsed), "{elapsed} s");
}

async fn a_quiet_connection_has_pings_and_signs_of_life() {
    let (database, _mesh, client) = start(&[]).await;
    let mut socket = WebSocket::open(client.url(), &[]).await.unwrap();
    socket.watch("a", LIMITS).await;
    socket.news().await;
    write_block(&database.connect().await, 4, None).await;
    let (opened, mut has_ping, mut has_sign) = (Instant::now(), false, false);
    while !(has_ping && has_sign) {
        match socket.message().await.unwrap().unwrap() {
            Message::Ping(_) => has_ping = true,
            Message::Text(text) => {
                assert_eq!(text.as_str(), r#"{"id":"a","height":"4"}"#);
                has_sign = true;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(opened.elapsed() < Duration::from_secs(18), "{:?}", opened.elapsed());
    socket.send(Message::Ping(b"x".to_vec().into())).await;
    while socket.message().await.unwrap().unwrap() != Message::Pong(b"x".to_vec().into()) {}
}

async fn late_rows_are_sent_without_a_new_block_and_an_idle_stream_sends_heartbeats() {
    let (database, _mesh, client) = start(&[]).await;
    let mut events = Events::open(&client, &withdrawal(), &[]).await.unwrap();
    events.event().await;
    let late = "UPDATE withdrawals SET ref = 'late'";
    database.connect().await.batch_execute(late).await.unwrap();
    let event = events.block_within(SIGN_WITHIN).await.expect("it is looked at").unwrap();
    assert_eq!((event.id, &event.json()["withdrawal"]["ref"]), (Some(3), &"late".into()));
    let sign = events.block_within(SIGN_WITHIN).await.expect("a sign of life").unwrap();
    assert_eq!(sign, Event { comment: Some("3".to_owned()), ..Event::default() });
}

/// It neither reads the answer nor the pings behind it meanwhile.
async fn an_http_2_client_may_pause_for_a_minute_while_an_answer_is_open() {
    let (_database, mesh, _client) = start(&[]).await;
    let mut connection = Connection::open(&mesh.url()).await.unwrap();
    let watch = get_request(&withdrawal(), &[(AUTHORITY, "x"), (ACCEPT, "text/event-stream")]);
    connection.send(&Frame::request(1, &watch)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    connection.send(&Frame::request(3, &get_request("/health", &[(AUTHORITY, "x")]))).await.unwrap();
    for stream in [1, 3] {
        let head = tokio::time::timeout(Duration::from_secs(20), connection.next(HEADERS)).await;
        let head = head.expect("an answer in time").expect("the connection stays open");
        assert_eq!(head.stream, stream);
    }
}
