//! Shared by the benchmark and the drill of watches: many connections from one machine, blocks that change the
//! watched rows, and the events of a stream.

pub(crate) mod blocks;
pub(crate) mod events;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Instant,
};

use mesh_testbed::http1::Dial;
use tokio::net::TcpStream;

use crate::rig::clients::connection::KEY;

/// Connections of one local address, far below the edge's limit for one address.
const PER_ADDRESS: usize = 500;
/// Connections that are opened concurrently.
pub(crate) const OPENED_AT_ONCE: usize = 64;

/// A height, and when it was committed or received.
pub(crate) type HeightAt = (u64, Instant);

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

/// The request for a watch over HTTP/1.1, from a client whose last height is this one.
pub(crate) fn watch_request(path: &str, last_id: Option<u64>) -> String {
    let last_id = last_id.map(|height| format!("Last-Event-ID: {height}\r\n")).unwrap_or_default();
    format!(
        "GET {path} HTTP/1.1\r\nHost: laboratory\r\nAuthorization: Bearer {KEY}\r\nAccept: text/event-stream\r\n\
         {last_id}\r\n"
    )
}
