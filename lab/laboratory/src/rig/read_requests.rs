//! The reads of the drills: fills tables, and finds the paths to request and the texts that answers must
//! contain.

use std::{net::SocketAddr, sync::Arc};

use mesh::{
    failure::{Failure, cannot},
    terminal::print_line,
};
use mesh_demo::{Plan, write_history};
use mesh_problem::error_chain;
use tokio_postgres::Client;

use super::clients::load::{ReadRequest, RequestClass};
use crate::private::Servers;

/// Blocks of the demo network's history, which has rows of every kind.
const DEMO_BLOCKS: u64 = 300;
/// Rows for single reads: many more than are read in the lifetime of a cache entry.
const FILL: &str = include_str!("../../sql/read_rows.sql");
/// Paths of single rows, which never change, and the JSON members that their answers contain.
const POINTS: &str = include_str!("../../sql/read_points.sql");
const LISTS: &str = include_str!("../../sql/read_lists.sql");
/// Paths that node-info answers. Only the answer of the second has a block height, so only that one is
/// cached.
const NODE: [&str; 3] = ["/blockchain/height", "/api/v2/network/limits", "/api/v2/upgrade/status"];

/// Fills the store and returns a connection to it.
pub(crate) async fn fill_in(servers: &Servers) -> Result<Client, Failure> {
    print_line("filling in rows");
    let plan = Plan { blocks: DEMO_BLOCKS, ..Plan::default() }.ending_at(std::time::SystemTime::now());
    write_history(servers.database.url(), &plan, |_, _| ()).await.map_err(|error| {
        Failure::failed(format!("the demo network could not be written: {}", error_chain(&error)))
    })?;
    let database = servers.connect().await?;
    for statement in [FILL, "VACUUM ANALYZE"] {
        database.batch_execute(statement).await.map_err(|error| cannot("fill in rows", &error))?;
    }
    Ok(database)
}

/// Requests that a filled store can answer.
#[derive(Clone, Default)]
pub(crate) struct ReadRequests {
    points: Vec<ReadRequest>,
    lists: Vec<ReadRequest>,
    node: Vec<ReadRequest>,
}

impl ReadRequests {
    /// Reads the ids that are in the store.
    pub(crate) async fn find(database: &Client) -> Result<Self, Failure> {
        let unreadable = |error: tokio_postgres::Error| cannot("find rows to read", &error);
        let points = database.query(POINTS, &[]).await.map_err(unreadable)?;
        let points = points.iter().map(|row| ReadRequest {
            path: row.get::<_, String>(0).into(),
            judge: Arc::new(row.get::<_, Vec<String>>(1)),
        });
        let lists = database.query(LISTS, &[]).await.map_err(unreadable)?;
        Ok(Self {
            points: points.collect(),
            lists: lists.iter().map(|row| row.get::<_, String>(0).into()).collect(),
            node: NODE.map(|path| path.to_owned().into()).into(),
        })
    }

    /// Requests for single rows.
    pub(crate) fn points(&self) -> Vec<ReadRequest> {
        self.points.clone()
    }

    /// A few requests whose answers the edge caches.
    pub(crate) fn hot(&self) -> Vec<ReadRequest> {
        let lists = self.lists.iter().take(5);
        self.points.iter().take(10).chain(lists).chain(&self.node[1..2]).cloned().collect()
    }

    /// Paths to watch: of single rows that a drill may change, as many as asked for, and of others of every kind.
    pub(crate) fn watched(&self, changing: usize) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let path = |request: &ReadRequest| Arc::clone(&request.path);
        let mut points = self.points.iter().map(path);
        let changing: Vec<Arc<str>> = points.by_ref().take(changing).collect();
        let lists = self.lists.iter().step_by(self.lists.len().div_ceil(20).max(1));
        (changing, points.take(10).chain(lists.chain(&self.node).map(path)).collect())
    }

    /// The request classes of the load. Random single rows and lists of many sizes mostly miss the edge's
    /// cache; requests to node-info go to the edge `uncached`.
    pub(crate) fn mix(self, edge: SocketAddr, uncached: SocketAddr) -> Vec<RequestClass> {
        let hot = self.hot();
        let class = |percent, edge, requests| RequestClass { percent, edge, requests };
        vec![
            class(60, edge, self.points),
            class(10, edge, self.lists),
            class(20, edge, hot),
            class(10, uncached, self.node),
        ]
    }
}
