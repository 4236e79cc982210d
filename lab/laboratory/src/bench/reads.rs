//! Suite "reads": single rows, cached rows, pages.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use mesh::failure::Failure;
use tokio::sync::OnceCell;

use super::{baseline, withdrawals};
use crate::{
    bench::args::BenchArgs,
    private::{Edges, Layout, PrivateMesh, Servers},
};

/// The servers that the mesh is compared with, and what all of them are asked.
pub(super) struct Baselines {
    /// The handler on one thread.
    pub(super) one: SocketAddr,
    /// The handler on its own thread, with two for HTTP.
    pub(super) more: SocketAddr,
    pub(super) paths: Arc<[String]>,
}

/// The running mesh with filled tables.
pub(super) struct Fixture<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) servers: Servers,
    pub(super) edges: Edges,
    /// Length of a round.
    pub(super) length: Duration,
    /// Timed requests of each page of the section "depth".
    pub(super) runs: u32,
    /// The baselines of the sections "point" and "hop", started on first use.
    pub(super) baselines: OnceCell<Baselines>,
}

impl<'a> Fixture<'a> {
    pub(super) async fn start(mesh: &'a PrivateMesh, args: &BenchArgs) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        withdrawals::fill(&servers).await?;
        let layout = Layout { env: vec![baseline::points()], ..Layout::default() };
        let edges = mesh.start_services(&servers, &layout).await?;
        let length = Duration::from_secs(args.seconds.into());
        Ok(Self { mesh, servers, edges, length, runs: args.runs, baselines: OnceCell::new() })
    }
}
