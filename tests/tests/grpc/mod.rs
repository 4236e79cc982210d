//! gRPC, seen from outside: the same operations and the same answers as over HTTP, by the same names.

mod answers;
mod deadlines;
mod downloads;
mod grpcurl;
mod limits;
mod python;
mod standard;

use std::time::Duration;

/// How soon something must be seen that happens at once.
const SOON: Duration = Duration::from_secs(5);
