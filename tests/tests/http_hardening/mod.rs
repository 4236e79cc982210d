//! Misbehaving clients over raw sockets: late, oversized, ambiguous. Each is refused or closed while normal
//! clients are not affected.

mod graceful_stop;
mod http2;
mod sizes;
mod smuggling;
mod timeouts;

use mesh_tests::raw::{TIME_LIMIT, answer, answer_to, begin, connect, rest, send};

/// A small valid request.
const VALID_REQUEST: &str = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
