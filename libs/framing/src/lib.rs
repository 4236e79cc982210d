//! Where the bytes of an HTTP/1 connection stop being clear. hyper reads what other servers and proxies read
//! otherwise (a bare line feed, a length beside a transfer coding), which is how a request is smuggled past one of
//! them inside another. Bytes go in as they come; out comes the first byte at which two readers may part.

mod field;
mod framing;
mod host;
mod refusal;

pub use framing::{Framing, POISON, Watch};
pub use host::is_host;
pub use refusal::{Ambiguity, Refusal};
