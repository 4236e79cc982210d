//! Sockets and connections: listening, accepting, message boundaries, timeouts, hyper.

pub(crate) mod endless;
mod exchange;
mod hyper_settings;
mod lent_socket;
pub(crate) mod listen;
pub(crate) mod server;
pub(crate) mod stalled_stream;
mod strict_http1;
mod switch;
mod timeouts;
pub(crate) mod tls;
mod tracked_body;
mod writer_thread;
