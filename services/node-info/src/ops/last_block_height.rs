//! LastBlockHeight: the newest block and the proof of work that a transaction needs now, of one moment.

use std::{fmt::Debug, ops::RangeInclusive, str::FromStr};

use actix::{Context, Handler};
use mesh_bus::{Answering, Ask};
use mesh_problem::{Code, Problem};
use mesh_store::{ReadError, Row, head_of};
use proto_msgs::v2::{LastBlockHeightReply, LastBlockHeightRequest};

use crate::NodeInfo;

/// The node is unreachable or initialising.
const NODE: u32 = 90_001;

/// The only hash function there is.
const HASH_FUNCTION: &str = "sha3_24_rounds";

impl Handler<Ask<LastBlockHeightRequest>> for NodeInfo {
    type Result = Answering<LastBlockHeightReply>;

    fn handle(&mut self, _: Ask<LastBlockHeightRequest>, _: &mut Context<Self>) -> Self::Result {
        let store = self.store.clone();
        Answering::by(async move {
            let row = store.point(include_str!("../../sql/last_block_height.sql"), &[]).await?;
            match reply(&row)? {
                Some(reply) => Ok(reply.into()),
                None => Err(Problem::new(Code::Unavailable, NODE, "no block is known yet")),
            }
        })
    }
}

fn reply(row: &Row) -> Result<Option<LastBlockHeightReply>, ReadError> {
    let Some((height, _)) = head_of(row)? else { return Ok(None) };
    let text = |column: &str| row.try_get::<_, Option<String>>(column);
    Ok(Some(LastBlockHeightReply {
        height,
        hash: row.try_get("hash")?,
        spam_pow_hash_function: text("hash_function")?.unwrap_or_else(|| HASH_FUNCTION.to_owned()),
        spam_pow_difficulty: parameter("spam.pow.difficulty", text("difficulty")?, 0..=256, 15),
        spam_pow_number_of_past_blocks: parameter(
            "spam.pow.numberOfPastBlocks",
            text("past_blocks")?,
            5..=500,
            100,
        ),
        spam_pow_number_of_tx_per_block: parameter(
            "spam.pow.numberOfTxPerBlock",
            text("tx_per_block")?,
            1..=u32::MAX,
            2,
        ),
        spam_pow_increasing_difficulty: parameter(
            "spam.pow.increaseDifficulty",
            text("increasing")?,
            0..=1,
            0,
        ) == 1,
        chain_id: row.try_get("chain_id")?,
    }))
}

/// A stored parameter, or its default when it is absent or outside its range (contract 4.8).
fn parameter<T>(key: &str, stored: Option<String>, range: RangeInclusive<T>, default: T) -> T
where
    T: FromStr + PartialOrd + Debug,
{
    let Some(stored) = stored else { return default };
    match stored.trim().parse() {
        Ok(value) if range.contains(&value) => value,
        _ => {
            tracing::warn!(
                key,
                stored,
                ?default,
                "a network parameter is out of range, its default is shown"
            );
            default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_outside_its_range_shows_its_default() {
        let difficulty = |stored: Option<&str>| parameter("d", stored.map(str::to_owned), 0..=256_u32, 15);
        assert_eq!(difficulty(None), 15);
        assert_eq!(difficulty(Some("256")), 256);
        assert_eq!(difficulty(Some("257")), 15);
        assert_eq!(difficulty(Some("-1")), 15);
        assert_eq!(difficulty(Some("many")), 15);
    }
}
