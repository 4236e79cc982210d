//! gRPC: the contract's operations by their names, with protobuf messages; health and reflection. A request's
//! message is checked, a reply's is passed on unchanged.

pub(crate) mod call;
mod download;
mod health;
pub(crate) mod protocol;
mod reflection;
pub(crate) mod standard;
mod status;
pub(crate) mod watch;
