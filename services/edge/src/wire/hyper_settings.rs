//! How hyper serves connections: what one may occupy, and what its client may do over HTTP/2.

use hyper_util::{
    rt::{TokioExecutor, TokioTimer},
    server::conn::auto,
};

use crate::config::{HTTP2_STREAMS, Limits, UNCONFIRMED_TIMEOUT};

/// Greatest buffer of a connection, so that thousands of slow clients cost little. hyper answers 431 to more
/// than 100 fields and to a head that does not fit.
const BUFFER_BYTES: usize = 64 << 10;

/// Limits of one HTTP/2 connection.
mod http2 {
    use std::time::Duration;

    /// Unread body bytes of one request.
    pub(super) const STREAM_WINDOW: u32 = 64 << 10;
    /// Unread body bytes of all requests.
    pub(super) const WINDOW: u32 = 256 << 10;
    pub(super) const FRAME_BYTES: u32 = 16 << 10;
    /// Requests that the client reset before they were accepted: it may cancel all that it has open.
    pub(super) const REMOTE_RESETS: usize = crate::config::HTTP2_STREAMS as usize;
    /// Requests that were reset for the client's errors, during all of a connection's life.
    pub(super) const LOCAL_RESETS: usize = 1024;
    /// Silence of the client before a ping, which keeps the connection open in networks that drop silent ones.
    pub(super) const PING_AFTER: Duration = Duration::from_secs(20);
}

/// The builder of connections with these limits.
pub(super) fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().header_read_timeout(None).max_buf_size(BUFFER_BYTES);
    // HTTP/2 counts 32 bytes more for each field than the limit does, and rejects a larger head without a body:
    // twice the limit lets the gateway reject it with an explanation.
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .max_header_list_size(u32::try_from(limits.head_bytes * 2).unwrap_or(u32::MAX))
        .max_frame_size(http2::FRAME_BYTES)
        .initial_stream_window_size(http2::STREAM_WINDOW)
        .initial_connection_window_size(http2::WINDOW)
        .max_send_buf_size(BUFFER_BYTES)
        .max_pending_accept_reset_streams(http2::REMOTE_RESETS)
        .max_local_error_reset_streams(http2::LOCAL_RESETS)
        .keep_alive_interval(http2::PING_AFTER)
        .keep_alive_timeout(UNCONFIRMED_TIMEOUT);
    builder
}
