//! `mesh chain`: a consensus node whose blocks follow from its arguments alone, so that a process that was killed
//! serves the same chain again.
//!
//! A block has orders, trades and what follows from them, in the shares of a busy network.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use mesh::failure::{Failure, cannot};
use mesh_devnode::ReservedPort;
use mesh_simulator::mix;
use mesh_testbed::scripted_node::{Block, NodeContent, Version, check_height, event, reply, serve, status};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch, time::sleep};

const CHAIN_ID: &str = "generated-1";

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
    pub(crate) listen: SocketAddr,
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl ChainArgs {
    /// A chain that begins now, and the port of its node.
    pub(crate) fn now(rows: u64, first: u64, period: Duration) -> Result<(ReservedPort, Self), Failure> {
        let port = ReservedPort::take().map_err(|error| cannot("find a port for the node", &error))?;
        let (seed, varied, last, rendered) = (1, false, None, first);
        let period_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        let (start_ms, listen) = (now_ms(), port.address());
        Ok((port, Self { seed, rows, varied, first, start_ms, period_ms, last, rendered, listen }))
    }

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
        fill(self, height, Block { hash, parent, ..Block::default() })
    }
}

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
    // Tokio lets it listen where an earlier process did, whose connections may still close.
    let listener = TcpListener::bind(args.listen).await.map_err(|error| cannot("listen", &error))?;
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

/// Types of events, their shares of the rows, and the attributes of a row; a name in braces stands for a generated
/// value.
static EVENTS: LazyLock<Vec<(&str, u32, &str)>> = LazyLock::new(|| {
    let read = |event: &'static str| {
        let (head, attributes) = event.split_once('\n')?;
        let (name, share) = head.split_once(' ')?;
        Some((name, share.parse::<u32>().ok()?, attributes))
    };
    include_str!("generated_events.txt").split("\n\n").filter_map(read).collect()
});
const MARKETS: u64 = 20;
const PARTIES: u64 = 1_000;
/// Events of a transaction.
const OF_TX: usize = 5;
/// Every so many blocks one has the time of the block before it.
const SAME_TIME: u64 = 8;

/// Fills in a block's time, transactions and events.
fn fill(args: &ChainArgs, height: u64, block: Block) -> Block {
    let mut random = SmallRng::seed_from_u64(scatter(args.seed ^ scatter(height)));
    let rows = if args.varied { random.random_range(0..=args.rows) } else { args.rows };
    let second = height - u64::from(height.is_multiple_of(SAME_TIME));
    let (day, hour, minute) = (1 + second / 86_400, second / 3_600 % 24, second / 60 % 60);
    let time = format!("2026-01-{day:02}T{hour:02}:{minute:02}:{:02}.123456789Z", second % 60);
    let total: u32 = EVENTS.iter().map(|(_, share, _)| share).sum();
    let mut events: Vec<Value> = (0..rows)
        .map(|index| {
            let mut left = random.random_range(0..total);
            let chosen = EVENTS.iter().find(|(_, share, _)| {
                let is_it = left < *share;
                left = left.wrapping_sub(*share);
                is_it
            });
            let (table, _, attributes) = chosen.unwrap_or(&EVENTS[0]);
            row((table, attributes), (height, index), &time, &mut random)
        })
        .collect();
    let end = events.split_off(events.len() * 9 / 10);
    let of_txs = events.split_off(events.len() / 10);
    let mut txs: Vec<(Vec<u8>, u32, Vec<Value>)> = of_txs
        .chunks(OF_TX)
        .enumerate()
        .map(|(index, events)| (format!("{}/{height}/{index}", args.seed).into_bytes(), 0, events.to_vec()))
        .collect();
    // Events of a failed transaction, and of other types, are no rows.
    txs.push((format!("failed/{height}").into_bytes(), 5, vec![event("mesh.trades", &[("price", "x")])]));
    Block { time, txs, begin: events, end, ..block }
}

fn row(
    (table, attributes): (&str, &str),
    (height, index): (u64, u64),
    time: &str,
    random: &mut SmallRng,
) -> Value {
    let number = height * 100_000 + index;
    let market = id('m', random.random_range(0..MARKETS));
    let [one, other] = [0; 2].map(|_| id('p', random.random_range(0..PARTIES)));
    let [price, more] = [0; 2].map(|_| (97_000_000 + random.random_range(0..1_000_000_u64)).to_string());
    let [size, fee] = [1_000, 500].map(|most| random.random_range(1..most).to_string());
    let [own, next, last] = [0, 1, 2].map(|step| id('r', number + step));
    // One row of an account, a position, a parameter in a block at most.
    let (of_block, parameter) = (id('b', index), format!("generated.{index}"));
    let values = [
        ("{own}", &*own),
        ("{next}", &next),
        ("{last}", &last),
        ("{market}", &market),
        ("{one}", &one),
        ("{other}", &other),
        ("{price}", &price),
        ("{more}", &more),
        ("{size}", &size),
        ("{fee}", &fee),
        ("{time}", time),
        ("{of_block}", &of_block),
        ("{parameter}", &parameter),
    ];
    let attributes = attributes.split_ascii_whitespace().filter_map(|attribute| attribute.split_once('='));
    let generated = attributes.map(|(name, text)| {
        let value = values.iter().find(|(placeholder, _)| *placeholder == text);
        (name, value.map_or(text, |(_, value)| *value))
    });
    let attributes: Vec<(&str, &str)> = generated.collect();
    event(table, &attributes)
}

/// An id of a kind, 64 hex digits.
fn id(kind: char, number: u64) -> String {
    let first = scatter(number ^ (u64::from(kind) << 56));
    let [second, third, fourth] = [1, 2, 3].map(|step| scatter(first.wrapping_add(step)));
    format!("{first:016x}{second:016x}{third:016x}{fourth:016x}")
}

/// Spreads numbers over all 64 bits.
fn scatter(number: u64) -> u64 {
    mix(number.wrapping_add(0x9e37_79b9_7f4a_7c15))
}
