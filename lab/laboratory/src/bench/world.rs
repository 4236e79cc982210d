//! The private mesh of a suite. What several sections share starts when the first of them needs it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use mesh::{
    failure::{Failure, cannot},
    terminal::print_line,
};
use tokio::sync::OnceCell;

use super::{BenchArgs, baseline, exports::History};
use crate::{
    private::{Edges, Layout, PrivateMesh, Servers},
    private_chain::NEXT_BLOCK,
};

pub(super) const STATEMENT: &str = include_str!("../../../../services/query/sql/get_withdrawal.sql");
/// Number of withdrawals of each kind: with hash ids, and with numeric ids.
pub(super) const ROWS: u64 = 100_000;
/// The first numeric id. pgbench can generate random numbers only, not hashes.
pub(super) const FIRST_NUMBER: i64 = 1_000_000_000_000_000_000;

/// Withdrawals with hash ids, as the network has them, stored in an order unrelated to that of the index, and
/// as many with numeric ids.
const FILL: &str = include_str!("../../sql/withdrawals.sql");

pub(super) struct World<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) servers: Servers,
    pub(super) args: &'a BenchArgs,
    /// The addresses of the handler without the bus: on one thread, and on three.
    pub(super) direct: OnceCell<[SocketAddr; 2]>,
    pub(super) history: OnceCell<History>,
    edges: OnceCell<Edges>,
    withdrawals: OnceCell<Arc<[String]>>,
}

impl<'a> World<'a> {
    /// Starts the servers.
    pub(super) async fn start(mesh: &'a PrivateMesh, args: &'a BenchArgs) -> Result<Self, Failure> {
        let (direct, history) = (OnceCell::new(), OnceCell::new());
        let (edges, withdrawals, servers) = (OnceCell::new(), OnceCell::new(), mesh.start_servers().await?);
        Ok(Self { mesh, servers, args, direct, history, edges, withdrawals })
    }

    /// Length of a round.
    pub(super) fn length(&self) -> Duration {
        Duration::from_secs(self.args.seconds.into())
    }

    /// The services, without a node.
    pub(super) async fn edges(&self) -> Result<&Edges, Failure> {
        let layout = Layout { env: vec![baseline::points()], ..Layout::default() };
        self.edges.get_or_try_init(|| self.mesh.start_services(&self.servers, &layout)).await
    }

    /// The paths of the withdrawals with hash ids.
    pub(super) async fn withdrawals(&self) -> Result<Arc<[String]>, Failure> {
        self.withdrawals.get_or_try_init(|| self.fill_withdrawals()).await.cloned()
    }

    async fn fill_withdrawals(&self) -> Result<Arc<[String]>, Failure> {
        print_line("filling in 200,000 withdrawals");
        let statements = [FILL, NEXT_BLOCK, "VACUUM ANALYZE withdrawals", "CHECKPOINT"];
        self.servers.execute("fill in withdrawals", &statements).await?;
        let database = self.servers.connect().await?;
        let statement =
            "SELECT '/api/v2/withdrawal/' || id FROM withdrawals WHERE length(id) = 64 ORDER BY block_time";
        let rows = database.query(statement, &[]).await;
        let rows = rows.map_err(|error| cannot("read the withdrawals", &error))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}
