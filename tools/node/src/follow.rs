//! The node's RPC over the blocks of the store: each new block of the store is appended to the chain, with
//! the spam rules of the store at that moment. An application receives the rules only.

use std::{
    collections::HashMap,
    convert::Infallible,
    time::{Duration, UNIX_EPOCH},
};

use mesh_devnode::{Application, Chain, DevNode, Settings};
use mesh_problem::error_chain;
use mesh_transaction::{Block, SpamRules};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_postgres::{Client, Row};

use crate::{
    config::Config,
    error::{NodeError, failed},
};

const NEW_BLOCKS: &str = include_str!("../sql/new_blocks.sql");
/// The LIMIT of `new_blocks.sql`.
const MOST_BLOCKS: usize = 500;
/// Timeout of one read; a database that takes longer is gone or frozen.
const DEADLINE: Duration = Duration::from_secs(10);
/// Poll interval for blocks that another process writes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Serves the RPC for ever. Fails when the node cannot start and when the store was replaced by another one.
/// `written` signals that this process has written a block.
pub(super) async fn answer(config: &Config, written: watch::Receiver<()>) -> NodeError {
    let StoreState { chain_id, blocks, rules } = read_store(config).await;
    let settings = Settings {
        network: config.network(chain_id),
        file: config.file.clone(),
        checks: config.checks,
        limits: config.limits,
        check_delay: config.check_delay,
        broadcasts: config.broadcasts.clone(),
    };
    let node = match DevNode::start(settings, config.listen, blocks, rules).await {
        Ok(node) => node,
        Err(error) => {
            let error = error_chain(&error);
            return failed!("the node cannot be started ({error}); try again");
        }
    };
    node.chain().catch_up(config.catching_up);
    tracing::info!(url = node.url(), "the development node answers");
    poll(config, written, async |store| advance(node.chain(), store).await).await
}

/// Appends the blocks to the chain that the store has and the chain has not. Returns the failure when the
/// store's blocks are not those of the chain.
async fn advance(chain: &Chain, store: &Store) -> Result<Option<NodeError>, AnyError> {
    let newest = chain.newest();
    let height = newest.as_ref().map_or(0, |block| block.height);
    let (blocks, rules) = store.blocks_from(height).await?;
    if let Some(newest) = newest
        && blocks.len() < MOST_BLOCKS
        && blocks.first().is_none_or(|first| first.hash != newest.hash)
    {
        let failure = failed!("the store was set back; the node starts again with its blocks");
        return Ok(Some(failure));
    }
    for block in blocks.into_iter().filter(|block| block.height > height) {
        chain.commit(block, rules).await?;
    }
    Ok(None)
}

/// Passes the spam rules of the store, and the block since which they hold, to an application for ever.
pub(super) async fn follow_rules(
    config: &Config,
    application: &Application,
    written: watch::Receiver<()>,
) -> Infallible {
    let mut last_height = 0;
    poll(config, written, async |store| {
        let (blocks, rules) = store.blocks_from(last_height).await?;
        for block in &blocks {
            application.amend(block.height, rules);
            last_height = block.height;
        }
        Ok(None)
    })
    .await
}

/// The content of the store when a node starts.
pub(super) struct StoreState {
    pub(super) chain_id: String,
    /// The newest blocks, in rising height.
    pub(super) blocks: Vec<Block>,
    pub(super) rules: SpamRules,
}

/// Reads the state of the store; retries while the store is unreachable.
pub(super) async fn read_store(config: &Config) -> StoreState {
    let never_written = watch::Sender::new(()).subscribe();
    poll(config, never_written, async |store| {
        let chain_id = store.chain_id().await?;
        let (blocks, rules) = store.blocks_from(0).await?;
        Ok(Some(StoreState { chain_id, blocks, rules }))
    })
    .await
}

/// Calls `read` with the store after every block that this process writes, at least once per
/// [`POLL_INTERVAL`], until it returns a value. Failures are retried without limit, with growing pauses and
/// a new connection: an unreachable database is assumed to come back.
async fn poll<T>(
    config: &Config,
    mut written: watch::Receiver<()>,
    mut read: impl AsyncFnMut(&Store) -> Result<Option<T>, AnyError>,
) -> T {
    let (mut connected, mut pause) = (None, FIRST_PAUSE);
    loop {
        let reading = async {
            let store = match connected.take() {
                Some(store) => store,
                None => Store::connect(&config.database_url).await?,
            };
            let value = read(&store).await?;
            connected = Some(store);
            Ok::<_, AnyError>(value)
        };
        match timeout(DEADLINE, reading).await.unwrap_or_else(|_| Err("it does not answer".into())) {
            Ok(Some(value)) => return value,
            Ok(None) => {
                pause = FIRST_PAUSE;
                // An error is impossible: the sender lives as long as this future.
                let _ = timeout(POLL_INTERVAL, written.changed()).await;
            }
            Err(error) => {
                tracing::warn!(error = error_chain(&*error), "the store cannot be read, trying again");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// A connection to the store.
struct Store {
    client: Client,
}

impl Store {
    async fn connect(url: &str) -> Result<Self, AnyError> {
        Ok(Self { client: mesh_store::connect(url, "mesh node").await? })
    }

    /// The chain's id; empty when the store has none.
    async fn chain_id(&self) -> Result<String, AnyError> {
        let row = self.client.query_opt("SELECT id FROM chain", &[]).await?;
        Ok(row.map_or_else(String::new, |row| row.get(0)))
    }

    /// The blocks from a height on, at most the newest 500, in rising order, and the rules since the newest.
    async fn blocks_from(&self, height: u64) -> Result<(Vec<Block>, SpamRules), AnyError> {
        let rows = self.client.query(NEW_BLOCKS, &[&height.cast_signed()]).await?;
        let rules = rows.last().map(rules_of).transpose()?.unwrap_or_default();
        Ok((rows.iter().map(block_of).collect::<Result<_, _>>()?, rules))
    }
}

fn block_of(row: &Row) -> Result<Block, AnyError> {
    let time: std::time::SystemTime = row.try_get("block_time")?;
    Ok(Block {
        height: row.try_get::<_, i64>("height")?.try_into()?,
        hash: row.try_get("hash")?,
        time: time.duration_since(UNIX_EPOCH).unwrap_or_default(),
    })
}

fn rules_of(row: &Row) -> Result<SpamRules, AnyError> {
    let parameters: Option<String> = row.try_get("parameters")?;
    let parameters: HashMap<String, String> =
        parameters.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default();
    let epoch: Option<f64> = row.try_get("epoch_s")?;
    let epoch = epoch.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let (rules, wrong) = SpamRules::stored(|key| parameters.get(key).cloned(), epoch);
    for parameter in wrong {
        tracing::warn!("{parameter}, its default holds");
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use mesh_testbed::Database;

    use super::*;

    #[tokio::test]
    async fn blocks_come_with_the_rules_of_their_moment() {
        let database = Database::fresh().await;
        let client = database.connect().await;
        let store = Store::connect(database.url()).await.unwrap();
        assert_eq!(store.blocks_from(0).await.unwrap(), (Vec::new(), SpamRules::default()));
        assert_eq!(store.chain_id().await.unwrap(), "");
        client
            .batch_execute(
                "INSERT INTO chain (id) VALUES ('net-1');
                INSERT INTO blocks
                    SELECT to_timestamp(height), height, repeat('A', 63) || height % 10 FROM generate_series(1, 510) AS height;
                INSERT INTO network_parameters (key, value, tx_hash, block_time) VALUES
                    ('spam.pow.difficulty', '9', '', to_timestamp(3)), ('spam.pow.increaseDifficulty', '1', '', to_timestamp(3)),
                    ('spam.pow.numberOfPastBlocks', '4', '', to_timestamp(3));
                INSERT INTO epochs (id, start_time, expire_time, tx_hash, block_time) VALUES
                    (1, to_timestamp(0), to_timestamp(1000), '', to_timestamp(1)),
                    (2, to_timestamp(0), to_timestamp(4800), '', to_timestamp(2));",
            )
            .await
            .unwrap();
        assert_eq!(store.chain_id().await.unwrap(), "net-1");
        let (blocks, rules) = store.blocks_from(509).await.unwrap();
        let block = |height: u64| Block {
            height,
            hash: format!("{}{}", "a".repeat(63), height % 10),
            time: Duration::from_secs(height),
        };
        assert_eq!(blocks, [block(509), block(510)]);
        let expected = SpamRules {
            difficulty: 9,
            increasing: true,
            bar: Duration::from_secs(100),
            ..SpamRules::default()
        };
        assert_eq!(rules, expected);
        let (blocks, _) = store.blocks_from(0).await.unwrap();
        assert_eq!((blocks.len(), blocks.first()), (MOST_BLOCKS, Some(&block(11))));
    }
}
