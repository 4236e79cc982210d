//! Watching through a proxy that forwards complete lines alone.

use std::time::Duration;

use mesh_proxy::{Line, Proxy};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{start, withdrawal, write_block};

/// Long for an event, and more than the longest time between two signs of life (W4).
const WITHIN: Duration = Duration::from_secs(20);

/// The end of an answer, which no other line follows before the client has it.
const EVENT_END: &str = "}\n\n";

/// What has come once it ends with this.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    let come = timeout(WITHIN, async {
        while !text.ends_with(end) {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).await.expect("it goes on");
            assert!(count > 0, "it ends: {text}");
            text.push_str(std::str::from_utf8(&bytes[..count]).expect("the fixture is ASCII"));
        }
    });
    if come.await.is_err() {
        panic!("{end:?} is held back: {text:?}");
    }
    text
}

#[tokio::test]
async fn a_proxy_that_forwards_complete_lines_holds_nothing_back() {
    let (database, _mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    let address = client.url().trim_start_matches("http://").parse().unwrap();
    let proxy = Proxy::start(address, 0).await.unwrap();
    proxy.set(Line { by_lines: true, ..Line::default() });
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    // HTTP/1.0, as many proxies use it. A chunked answer would have chunk sizes between the lines.
    let request = format!("GET {} HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n", withdrawal());
    stream.write_all(request.as_bytes()).await.unwrap();
    let head = read_until(&mut stream, EVENT_END).await;
    assert!(head.starts_with("HTTP/1.") && head.contains("\nid: 3\nevent: answer\ndata: {"), "{head}");
    assert!(!head.contains("chunked"), "{head}");
    for (height, reference) in [(4, "four"), (5, "five")] {
        write_block(&writer, height, Some(reference)).await;
        let event = read_until(&mut stream, EVENT_END).await;
        assert!(event.starts_with(&format!("id: {height}\n")) && event.contains(reference), "{event}");
    }
    write_block(&writer, 6, None).await;
    assert_eq!(read_until(&mut stream, "\n\n").await, ": 6\n\n", "a sign of life");
}
