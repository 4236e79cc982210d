//! Raw HTTP/1 connections to the edge, with a time limit for what must happen at once.

use std::time::Duration;

use mesh_testbed::{Answer, http1::Connection};
use tokio::time::timeout;

/// Time limit for what must happen at once.
pub const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Opens a connection.
pub async fn connect(url: &str) -> Connection {
    Connection::open(url).await.unwrap_or_else(|error| panic!("the edge does not listen: {error}"))
}

/// Opens a connection and sends a request, or the beginning of one.
pub async fn begin(url: &str, request: &str) -> Connection {
    let mut connection = connect(url).await;
    send(&mut connection, request).await;
    connection
}

/// Sends a request, or a part of one.
pub async fn send(connection: &mut Connection, request: &str) {
    let sent = connection.send(request.as_bytes()).await;
    sent.unwrap_or_else(|error| panic!("the edge does not read: {error}"));
}

/// The next answer of a connection.
pub async fn answer(connection: &mut Connection) -> Answer {
    let answer = timeout(TIME_LIMIT, connection.answer(false)).await;
    let answer = answer.unwrap_or_else(|_| panic!("there is no answer within {TIME_LIMIT:?}"));
    let answer = answer.unwrap_or_else(|error| panic!("no answer: {error}"));
    answer.unwrap_or_else(|| panic!("the edge closes without an answer"))
}

/// The answer to a request over its own connection.
pub async fn answer_to(url: &str, request: &str) -> Answer {
    answer(&mut begin(url, request).await).await
}

/// The remaining bytes until the edge closes the connection; a reset fails the test.
pub async fn rest(connection: &mut Connection) -> Vec<u8> {
    let rest = timeout(TIME_LIMIT, connection.rest()).await;
    let rest = rest.unwrap_or_else(|_| panic!("the edge does not close within {TIME_LIMIT:?}"));
    rest.unwrap_or_else(|error| panic!("the edge does not close properly: {error}"))
}
