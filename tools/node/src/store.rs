//! What a node needs of the store that its chain continues, read once before it starts.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use mesh_demo::{DemoError, Plan, Simulator, write_history};
use mesh_devnode::Base;
use mesh_problem::error_chain;
use mesh_transaction::{Block, SpamRules};
use tokio_postgres::{Client, Row};

use crate::error::{NodeError, failed};

const NEWEST_BLOCK: &str = include_str!("../sql/newest_block.sql");

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The demo network that a store has the history of.
pub struct DemoNetwork {
    /// Its plan.
    pub plan: Plan,
    /// Its state at the newest block of the store, when that is known; otherwise it is computed if it is needed.
    pub simulator: Option<Simulator>,
}

impl DemoNetwork {
    /// The state at the newest block of the store. `None` when the network cannot continue the store, such as the
    /// history of another release.
    async fn at_head(self, url: &str, base: &Base) -> Result<Option<Simulator>, NodeError> {
        let simulator = match self.simulator {
            Some(simulator) => Ok(simulator),
            None => write_history(url, &self.plan, |_, _| {}).await,
        };
        match simulator {
            Ok(simulator) if simulator.height() == base.height() => Ok(Some(simulator)),
            Ok(_) => Err(failed!("the store has changed meanwhile; try again")),
            Err(error @ DemoError::Foreign(_)) => {
                eprintln!("the demo network ends, empty blocks follow: {}", error_chain(&error));
                Ok(None)
            }
            Err(error) => Err(failed!("the demo network cannot be continued: {}", error_chain(&error))),
        }
    }
}

/// A connection to the store.
pub(crate) struct Store<'a> {
    url: &'a str,
    client: Client,
}

impl<'a> Store<'a> {
    pub(crate) async fn connect(url: &'a str) -> Result<Self, NodeError> {
        let client = mesh_store::connect(url, "mesh node").await.map_err(|error| unread(&error))?;
        Ok(Self { url, client })
    }

    /// The base of a chain that continues the store's newest block, still without the demo network.
    pub(crate) async fn base(&self) -> Result<Base, NodeError> {
        self.read_base().await.map_err(|error| unread(&*error))
    }

    /// The same with the demo network.
    pub(crate) async fn base_with(&self, demo: Option<DemoNetwork>) -> Result<Base, NodeError> {
        let mut base = self.base().await?;
        if let Some(network) = demo {
            base.demo = network.at_head(self.url, &base).await?;
        }
        Ok(base)
    }

    /// The hash of a block; empty when there is no such block.
    pub(crate) async fn hash_at(&self, height: u64) -> Result<String, NodeError> {
        let sql = "SELECT lower(hash) FROM blocks WHERE height = $1";
        let row = self.client.query_opt(sql, &[&height.cast_signed()]).await;
        Ok(row.map_err(|error| unread(&error))?.map_or_else(String::new, |row| row.get(0)))
    }

    async fn read_base(&self) -> Result<Base, AnyError> {
        let chain = self.client.query_opt("SELECT id FROM chain", &[]).await?;
        let newest = self.client.query_opt(NEWEST_BLOCK, &[]).await?;
        Ok(Base {
            chain_id: chain.map_or_else(String::new, |row| row.get(0)),
            newest: newest.as_ref().map(block_of).transpose()?,
            rules: newest.as_ref().map(rules_of).transpose()?.unwrap_or_default(),
            demo: None,
        })
    }
}

fn block_of(row: &Row) -> Result<Block, AnyError> {
    let time: SystemTime = row.try_get("block_time")?;
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

fn unread(error: &dyn std::error::Error) -> NodeError {
    failed!("cannot read the chain of the database: {}", error_chain(error))
}

#[cfg(test)]
mod tests {
    use mesh_testbed::Database;

    use super::*;

    #[tokio::test]
    async fn a_base_has_the_newest_block_and_the_rules_after_it() {
        let (database, client) = Database::with_client().await;
        let store = Store::connect(database.url()).await.unwrap();
        let base = store.base().await.unwrap();
        assert_eq!((base.newest, base.rules, base.chain_id), (None, SpamRules::default(), String::new()));
        let rows = include_str!("store/base.sql");
        client.batch_execute(rows).await.unwrap();
        let base = store.base().await.unwrap();
        let hash = format!("{}5", "a".repeat(63));
        assert_eq!(base.newest, Some(Block { height: 5, hash, time: Duration::from_secs(5) }));
        let expected = SpamRules {
            difficulty: 9,
            increasing: true,
            bar: Duration::from_secs(100),
            ..SpamRules::default()
        };
        assert_eq!((base.rules, base.chain_id.as_str()), (expected, "net-1"));
    }
}
