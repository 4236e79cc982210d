//! `mesh chain`: a consensus node whose blocks follow from its arguments alone, so that a process that was killed
//! serves the same chain again.

mod rows;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use mesh::failure::{Failure, cannot};
use mesh_testbed::scripted_node::{Block, NodeContent, Version, check_height, reply, serve, status};
use serde::{Deserialize, Serialize};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    time::sleep,
};

/// The name of the chain.
const CHAIN_ID: &str = "generated-1";
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// What a generated chain is; its process gets it as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ChainArgs {
    /// Source of the content
    pub(crate) seed: u64,
    /// Rows of a block
    pub(crate) rows: u64,
    /// Vary the rows of a block up to that number
    pub(crate) varied: bool,
    /// Blocks at the start
    pub(crate) first: u64,
    /// When the chain starts, milliseconds since 1970
    pub(crate) start_ms: u64,
    /// Time from one block to the next, milliseconds
    pub(crate) period_ms: u64,
    /// A file that will contain the height of the last block
    pub(crate) last: Option<PathBuf>,
    /// Blocks that are rendered before the first request
    pub(crate) rendered: u64,
    /// Where to listen
    pub(crate) listen: SocketAddr,
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl ChainArgs {
    /// The height of the newest block now.
    pub(crate) fn latest(&self) -> u64 {
        let latest = self.first + now_ms().saturating_sub(self.start_ms) / self.period_ms;
        let last = self.last.as_ref().and_then(|last| std::fs::read_to_string(last).ok());
        last.and_then(|last| last.trim().parse().ok()).map_or(latest, |last: u64| latest.min(last))
    }

    /// Time of a block, milliseconds since 1970.
    pub(crate) fn available_ms(&self, height: u64) -> u64 {
        self.start_ms + height.saturating_sub(self.first) * self.period_ms
    }

    fn hash(&self, height: u64) -> String {
        if height == 0 { String::new() } else { format!("{:016x}{height:048x}", self.seed) }
    }

    fn block(&self, height: u64) -> Block {
        let (hash, parent) = (self.hash(height), self.hash(height - 1));
        rows::fill(self, height, Block { hash, parent, ..Block::default() })
    }
}

/// A chain that is served.
struct Served {
    args: ChainArgs,
    /// The replies for the first blocks.
    rendered: Vec<[Bytes; 2]>,
    heights: watch::Sender<u64>,
}

impl Served {
    fn render(args: &ChainArgs, height: u64) -> [Bytes; 2] {
        let block = args.block(height);
        [reply(&block.block(CHAIN_ID, height)), reply(&block.results(Version::V038, height))]
    }

    /// Announces each block at its time.
    async fn announce(&self) {
        loop {
            let latest = self.args.latest();
            self.heights.send_if_modified(|height| std::mem::replace(height, latest) != latest);
            let next = self.args.available_ms(latest + 1).saturating_sub(now_ms());
            sleep(Duration::from_millis(next.clamp(1, 100))).await;
        }
    }
}

impl NodeContent for Served {
    fn reply(&self, method: &str, height: u64) -> Result<Bytes, String> {
        let latest = self.args.latest();
        let index = match method {
            "status" => return Ok(reply(&status(CHAIN_ID, 1, (latest, &self.args.hash(latest))))),
            "block" => 0,
            "block_results" => 1,
            _ => return Err(format!("there is no method {method}")),
        };
        check_height(height, 1, latest)?;
        let rendered = self.rendered.get(height as usize - 1);
        Ok(rendered
            .map_or_else(|| Self::render(&self.args, height)[index].clone(), |both| both[index].clone()))
    }

    fn heights(&self) -> Option<watch::Receiver<u64>> {
        Some(self.heights.subscribe())
    }
}

/// Serves a chain until it is killed.
///
/// # Errors
/// The arguments cannot be read, or the address cannot be listened on.
pub(crate) async fn run(args: &str) -> Result<(), Failure> {
    let args: ChainArgs = serde_json::from_str(args).map_err(|error| cannot("read the chain", &error))?;
    let rendered = (1..=args.rendered).map(|height| Served::render(&args, height)).collect();
    let (heights, _) = watch::channel(0);
    let listener = listen(args.listen).map_err(|error| cannot("listen", &error))?;
    let served = Arc::new(Served { args, rendered, heights });
    let content: Arc<dyn NodeContent> = Arc::clone(&served) as _;
    tokio::select! {
        ended = serve(listener, content) => match ended {
            Ok(never) => match never {},
            Err(error) => Err(cannot("accept connections", &error)),
        },
        () = served.announce() => Ok(()),
    }
}

/// Listens where an earlier process did, whose connections may still close.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
