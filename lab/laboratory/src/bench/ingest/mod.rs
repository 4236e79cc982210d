//! Suite "ingest": a chain's blocks into the store, catching up and as they come.

pub(super) mod catch_up;
pub(super) mod front;

use std::time::Duration;

use mesh::failure::{Failure, cannot};
use mesh_devnode::ReservedPort;

use crate::generated_chain::{ChainArgs, now_ms};

/// A port for the node of a chain that begins now.
pub(super) fn chain(rows: u64, first: u64, period: Duration) -> Result<(ReservedPort, ChainArgs), Failure> {
    let port = ReservedPort::take().map_err(|error| cannot("find a port for the node", &error))?;
    let args = ChainArgs {
        seed: 1,
        rows,
        varied: false,
        first,
        start_ms: now_ms(),
        period_ms: u64::try_from(period.as_millis()).unwrap_or(u64::MAX),
        last: None,
        rendered: first,
        listen: port.address(),
    };
    Ok((port, args))
}
