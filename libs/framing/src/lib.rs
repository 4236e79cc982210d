//! Strict message boundaries of HTTP/1. hyper accepts some bytes that other servers and proxies read
//! differently (a bare line feed, a length next to a transfer coding), which allows request smuggling. Bytes
//! go in as they are received; out comes the first one that two parsers may understand differently.

mod body;
mod field;
mod framing;
mod head;
mod host;
mod refusal;

pub use framing::{Framing, Observer, POISON};
pub use host::is_host;
pub use refusal::{Ambiguity, Refusal};
