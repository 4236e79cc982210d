//! Suite "ingest": a chain's blocks into the store, catching up and as they come.

mod catch_up;
mod front;
mod prepared;

use std::time::Duration;

use mesh::failure::{Failure, cannot};
use mesh_devnode::ReservedPort;

use super::section::Section;
use crate::{
    bench::args::BenchArgs,
    generated_chain::{ChainArgs, now_ms},
    private::{PrivateMesh, Servers},
};

/// The servers, without services so far.
pub(super) struct Fixture<'a> {
    mesh: &'a PrivateMesh,
    servers: Servers,
    /// Length of the measurement of new blocks.
    length: Duration,
    /// Rows of the chain that is caught up with.
    rows: u64,
}

/// Shortest measurement of new blocks, so that it has enough of them.
const LEAST_LENGTH: Duration = Duration::from_secs(60);
/// A part of `--rows` is caught up with in a round.
const PART: u64 = 5;

impl<'a> Fixture<'a> {
    pub(super) async fn start(mesh: &'a PrivateMesh, args: &BenchArgs) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        let length = Duration::from_secs(args.seconds.into()).max(LEAST_LENGTH);
        Ok(Self { mesh, servers, length, rows: args.rows / PART })
    }

    pub(super) async fn catch_up(&self) -> Result<Section, Failure> {
        catch_up::measure(self).await
    }

    pub(super) async fn front(&self) -> Result<Section, Failure> {
        front::measure(self).await
    }
}

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
