//! What benchmark and drill of watches share: many connections from one machine, the blocks that change what is
//! watched, and the events of a stream.

pub(crate) mod blocks;
pub(crate) mod events;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Instant,
};

use mesh_testbed::http1::Dial;
use tokio::net::TcpStream;

/// Connections of one local address, far below the share of the edge's connections that one may hold.
const PER_ADDRESS: usize = 500;
/// Connections that are opened at the same time.
pub(crate) const OPENED_AT_ONCE: usize = 64;

/// A height, and when it was written or a client was told it.
pub(crate) type Told = (u64, Instant);

/// Opens a client's connection; clients of consecutive numbers share a local address.
///
/// # Errors
/// When the connection fails.
pub(crate) async fn connect(
    edge: SocketAddr,
    number: usize,
    receive_buffer: Option<u32>,
) -> std::io::Result<TcpStream> {
    let last = u8::try_from(number / PER_ADDRESS + 2).unwrap_or(u8::MAX);
    let source = Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
    Dial { source, receive_buffer }.connect(edge).await
}

/// The request for a watch over HTTP/1.1, of a client that has this height.
pub(crate) fn watch_request(path: &str, last_id: Option<u64>) -> String {
    let last_id = last_id.map(|height| format!("Last-Event-ID: {height}\r\n")).unwrap_or_default();
    format!("GET {path} HTTP/1.1\r\nHost: laboratory\r\nAccept: text/event-stream\r\n{last_id}\r\n")
}
