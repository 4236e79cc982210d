//! The world of a drill: a private mesh with what the drill needs of filled tables, blocks, a sealed
//! history, a ledger, a node, and links that can fail.

use std::{sync::Arc, time::Duration};

use mesh::{failure::Failure, processes::DEVNODE, terminal::print_line};
use mesh_devnode::ReservedPort;
use mesh_launcher::services::SERVICES;

use super::{
    args::{Options, PlayArgs},
    clients::{consistency::Node, files::Files, load::Load},
    faults::{
        injector::FaultInjector,
        links::Links,
        schedule::{Fault, ScheduledFault},
    },
    public::PublicAccess,
    read_requests::{ReadRequests, fill_in},
};
use crate::{
    private::{Edges, Layout, PrivateMesh, Servers, variables},
    synthetic::Synthetic,
    watches::Blocks,
};

/// Replicas of every service in drills of the whole mesh.
pub(crate) const REPLICAS: u32 = 2;

/// What a world has.
#[derive(Default)]
pub(super) struct Setup {
    pub(super) fill: &'static [&'static str],
    /// Whether the store has the demo network's rows and those of [`ReadRequests`].
    pub(super) has_rows: bool,
    /// A sealed history, and the number of ledger entries.
    pub(super) files: Option<(Synthetic, u32)>,
    /// The milliseconds between two blocks of a node.
    pub(super) node_block_ms: Option<&'static str>,
    /// Numbers of replicas; services not listed have one.
    pub(super) replicas: Vec<(&'static str, u32)>,
    /// Variables of every service.
    pub(super) env: Vec<(&'static str, String)>,
    /// Whether the edges have TLS, and refuse requests without a key.
    pub(super) is_public: bool,
    /// Whether every replica reaches its servers, and clients the edges, through links.
    pub(super) has_links: bool,
    /// The rate of a load of reads that runs all the time, requests a second, while a block is written every second.
    pub(super) rate: Option<u32>,
}

/// A running mesh with its data.
pub(super) struct World<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) options: &'a Options,
    pub(super) play: PlayArgs,
    pub(super) seed: u64,
    pub(super) servers: Servers,
    pub(super) edges: Edges,
    pub(super) files: Arc<Files>,
    pub(super) read_requests: ReadRequests,
    pub(super) links: Links,
    pub(super) public: Option<PublicAccess>,
    node: Option<ReservedPort>,
    load: Option<Load>,
    _blocks: Option<Blocks>,
}

impl<'a> World<'a> {
    /// Starts servers, node, services and load.
    pub(super) async fn start(
        mesh: &'a PrivateMesh,
        options: &'a Options,
        setup: Setup,
        seed: u64,
    ) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        servers.execute("fill in rows", setup.fill).await?;
        let database = if setup.has_rows { fill_in(&servers).await? } else { servers.connect().await? };
        let mut files = match setup.files {
            Some((plan, entries)) => Files::create(mesh.home.root(), plan, &database, entries, seed).await?,
            None => Files::default(),
        };
        let read_requests =
            if setup.has_rows { ReadRequests::find(&database).await? } else { ReadRequests::default() };
        let node = match setup.node_block_ms {
            Some(block_ms) => {
                let calls = calls(mesh);
                let calls = calls.to_string_lossy();
                let variables = [("MESH_DEVNODE_BLOCK_MS", block_ms), ("MESH_DEVNODE_BROADCASTS", &*calls)];
                Some(mesh.start_node(&servers, setup.has_rows, &variables).await?)
            }
            None => None,
        };
        let node_address = node.as_ref().map(ReservedPort::address);
        let mut links = match setup.has_links {
            true => Links::inside(&servers, node_address, seed).await?,
            false => Links::default(),
        };
        let replica_env = setup.has_links.then(|| links.replica_env(&servers));
        let public = setup.is_public.then(|| PublicAccess::prepare(mesh.home.root()));
        let mut public = public.transpose()?;
        print_line("starting services");
        let mut env = variables(&setup.env);
        env.extend(public.iter().flat_map(|public| public.env.iter().cloned()));
        let layout = Layout {
            replicas: &setup.replicas,
            env,
            node_url: node_address.map(|node| format!("http://{node}")),
            replica_env,
        };
        let mut edges = mesh.start_services(&servers, &layout).await?;
        if let Some(public) = &mut public {
            edges.cached = public.tunnel(edges.cached);
        }
        if setup.has_links {
            edges.cached = links.before(edges.cached, seed).await?;
        }
        if setup.files.is_some() {
            files.learn_ledger(edges.cached).await?;
        }
        let blocks = setup.rate.map(|_| Blocks::write(&servers, None));
        let mix = || read_requests.clone().mix(edges.cached, edges.uncached);
        let load = setup.rate.map(|rate| Load::start(mix(), rate, seed)).transpose()?;
        Ok(Self {
            mesh,
            play: options.play(),
            options,
            seed,
            servers,
            edges,
            files: Arc::new(files),
            read_requests,
            links,
            public,
            node,
            load,
            _blocks: blocks,
        })
    }

    /// The load that runs all the time.
    pub(super) fn load(&self) -> &Load {
        self.load.as_ref().expect("the setup has a rate")
    }

    /// Waits until the node has no transaction waiting for a block; returns a direct client of the node.
    pub(super) async fn idle_node(&self) -> Result<Node, Failure> {
        let node = self.node.as_ref().ok_or_else(|| Failure::failed("this mesh has no node"))?;
        Node::idle(node.address()).await
    }

    /// Waits until every replica and the node are ready; returns whether they are.
    pub(super) async fn becomes_ready(&self, within: Duration) -> bool {
        let services = SERVICES.iter().map(|service| service.name);
        self.mesh.until_serving(&services.chain([DEVNODE]).collect::<Vec<_>>(), within).await
    }

    /// Injects a fault and waits for its repair.
    pub(super) async fn inject(&self, fault: Fault) -> Result<(), Failure> {
        let schedule = [ScheduledFault { at: Duration::ZERO, fault }];
        let injected = FaultInjector::new(self.mesh).run(&schedule).await;
        let broken = injected.into_iter().find(|injected| !injected.is_repaired);
        broken.map_or(Ok(()), |broken| Err(Failure::failed(broken.note)))
    }
}

/// The file to which the node writes each broadcast call.
pub(super) fn calls(mesh: &PrivateMesh) -> std::path::PathBuf {
    mesh.home.node().join("calls")
}
