//! LastBlockHeight: the newest block and the proof of work that a transaction needs now, both of the same
//! instant (contract 4.8). The block is the consensus node's, the parameters are the store's; without a node
//! both are the store's.

use std::{collections::HashMap, time::Duration};

use actix::{Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use mesh_problem::{Code, Problem};
use mesh_store::{ReadError, Row, Unreadable, head_of};
use mesh_transaction::{OutOfRange, SpamRules};
use proto_msgs::{
    numbers::last_block_height::NODE,
    v2::{LastBlockHeightReply, LastBlockHeightRequest},
};
use tokio::time::Instant;

use crate::{
    NodeInfo,
    node::{Block, MAX_STATUS_AGE, NodeState, Observation, SILENT},
};

/// The only hash function there is.
const HASH_FUNCTION: &str = "sha3_24_rounds";

/// Time to live of a cached reply while store and node report no change.
const CACHE_TTL: Duration = Duration::from_millis(500);

/// Most reads of the store when the node's head changes during a read: block and parameters must be of the
/// same instant.
const MAX_READS: usize = 4;

/// A cached reply, valid while the heads of store and node have not changed.
pub(crate) struct CachedReply {
    reply: LastBlockHeightReply,
    /// The store's height when it was read.
    store: Option<u64>,
    read_at: Instant,
}

impl Handler<Ask<LastBlockHeightRequest>> for NodeInfo {
    type Result = AnswerFuture<LastBlockHeightReply>;

    fn handle(&mut self, Ask(_, scope): Ask<LastBlockHeightRequest>, _: &mut Context<Self>) -> Self::Result {
        let (store, node, cache) = (self.store.clone(), self.node.clone(), self.height.clone());
        scope.run(async move {
            let newest = || node.as_ref().map(|node| newest(&node.borrow())).transpose();
            let mut block = newest()?;
            let state = store.state();
            let is_fresh = |cached: &&CachedReply| {
                cached.read_at.elapsed() < CACHE_TTL
                    && state.is_there
                    && cached.store == state.head.map(|(height, _)| height)
                    && block.as_ref().is_some_and(|block| block.height == cached.reply.height)
            };
            if let Some(cached) = cache.borrow().as_ref().filter(is_fresh) {
                return Ok(cached.reply.clone().into());
            }
            let mut read_at = Instant::now();
            let mut row = store.point(include_str!("../../sql/last_block_height.sql"), &[], None).await?;
            for _ in 1..MAX_READS {
                let now = newest()?;
                if now == block {
                    break;
                }
                (block, read_at) = (now, Instant::now());
                row = store.point(include_str!("../../sql/last_block_height.sql"), &[], None).await?;
            }
            let (store_height, reply) = reply(&row, block, store.unreadable())?
                .ok_or_else(|| Problem::new(Code::Unavailable, NODE, "no block is known yet"))?;
            *cache.borrow_mut() = Some(CachedReply { reply: reply.clone(), store: store_height, read_at });
            Ok(reply.into())
        })
    }
}

/// The node's newest block.
fn newest(observation: &Observation) -> Result<Block, Problem> {
    let unavailable = |what: &str| Problem::new(Code::Unavailable, NODE, what);
    match &observation.state {
        NodeState::Synced(block) if observation.at.elapsed() < MAX_STATUS_AGE => Ok(block.clone()),
        NodeState::CatchingUp { .. } => Err(unavailable("the consensus node is catching up")),
        NodeState::Away(why) if why != SILENT => {
            Err(unavailable("another server answers instead of the consensus node"))
        }
        NodeState::Synced(_) | NodeState::Away(_) => Err(unavailable("the consensus node does not answer")),
    }
}

/// The reply and the store's height; `None` while no block is known.
fn reply(
    row: &Row,
    block: Option<Block>,
    unreadable: &Unreadable,
) -> Result<Option<(Option<u64>, LastBlockHeightReply)>, ReadError> {
    let store_height = head_of(row)?.map(|(height, _)| height);
    let block = match (block, store_height) {
        (Some(block), _) => block,
        (None, Some(height)) => {
            Block { height, hash: row.try_get("hash")?, chain_id: row.try_get("chain_id")? }
        }
        (None, None) => return Ok(None),
    };
    let hash_function = row.try_get::<_, Option<String>>("hash_function")?;
    if let Some(other) = hash_function.filter(|name| name != HASH_FUNCTION) {
        unreadable.note("network_parameters_current", "spam.pow.hashFunction", "value", other);
    }
    // A column has the key of its parameter as its name.
    let mut stored = HashMap::new();
    for key in SpamRules::KEYS {
        stored.insert(key, row.try_get::<_, Option<String>>(key)?);
    }
    let (rules, out_of_range) = SpamRules::stored(|key| stored.remove(key).flatten(), None);
    for OutOfRange { key, stored } in out_of_range {
        unreadable.note("network_parameters_current", key, "value", stored);
    }
    let reply = LastBlockHeightReply {
        height: block.height,
        hash: block.hash,
        spam_pow_hash_function: HASH_FUNCTION.to_owned(),
        spam_pow_difficulty: rules.difficulty,
        spam_pow_number_of_past_blocks: rules.past_blocks,
        spam_pow_number_of_tx_per_block: rules.tx_per_block,
        spam_pow_increasing_difficulty: rules.increasing,
        chain_id: block.chain_id,
    };
    Ok(Some((store_height, reply)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_answer_is_not_called_silence() {
        let problem = |why: &str| {
            let state = NodeState::Away(why.to_owned());
            newest(&Observation { state, at: Instant::now() }).unwrap_err().details[0].message.clone()
        };
        assert_eq!(problem(SILENT), "the consensus node does not answer");
        let foreign = problem("gives no answer of a consensus node: HTTP 200 OK");
        assert_eq!(foreign, "another server answers instead of the consensus node");
    }
}
