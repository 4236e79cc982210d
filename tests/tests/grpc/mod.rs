//! gRPC from outside: the same operations and answers as over HTTP.

mod answers;
mod deadlines;
mod downloads;
mod limits;
mod standard;

use std::time::Duration;

/// Time limit for what must happen at once.
const TIME_LIMIT: Duration = Duration::from_secs(30);
