//! Misbehaving clients over raw sockets: late, oversized, ambiguous. Each is refused or closed while normal
//! clients are not affected.

mod graceful_stop;
mod http2;
mod sizes;
mod smuggling;
mod timeouts;
mod traffic;
mod unread_answers;

use std::time::Duration;

use mesh_testbed::http1::{Connection, RawAnswer};
use tokio::time::timeout;

/// Time limit for what must happen at once.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// A small valid request.
const VALID_REQUEST: &str = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";

async fn connect(url: &str) -> Connection {
    Connection::open(url).await.expect("the edge listens")
}

/// The next answer of a connection.
async fn answer(connection: &mut Connection) -> RawAnswer {
    let answer = timeout(TIME_LIMIT, connection.answer(false)).await.expect("the edge answers in time");
    answer.expect("the edge answers HTTP").expect("the edge answers")
}

/// The remaining bytes until the edge closes the connection; a reset fails the test.
async fn rest(connection: &mut Connection) -> Vec<u8> {
    let rest = timeout(TIME_LIMIT, connection.rest()).await.expect("the edge closes in time");
    rest.expect("the edge closes and does not reset")
}
