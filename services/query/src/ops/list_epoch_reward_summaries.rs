//! ListEpochRewardSummaries: rewards summed over parties per epoch, market, asset and reward type.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, PastSource, ReadError, RowReader, Value};
use proto_msgs::{
    numbers::list_epoch_reward_summaries::{FILTER, SUMMARIES as FAILED},
    v2::{EpochRewardSummary, ListEpochRewardSummariesRequest},
};

use crate::paging::PagedList;

/// Sums of rewards over parties. There is an index for markets and one for assets.
pub static SUMMARIES: List = List {
    name: "epochReward",
    table: "rewards",
    key: &[
        KeyKind::Integer.column("epoch_id"),
        KeyKind::Text.column("market_id"),
        KeyKind::Text.column("asset_id"),
        KeyKind::Text.column("reward_type"),
    ],
    columns: &["coalesce(sum(amount), 0)::text AS amount"],
    is_grouped: true,
    filters: &[Filter::AtLeast, Filter::AtMost, Filter::AnyOf("market_id"), Filter::AnyOf("asset_id")],
    indexed: &["market_id", "asset_id"],
    past: &[PastSource::new("SELECT * FROM rewards WHERE rewards.block_time <= {time}")],
    past_bound: Some(|past| Value::Integer(past.reward_epoch)),
    ..List::PLAIN
};

impl PagedList for ListEpochRewardSummariesRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &SUMMARIES;

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        let filter = self.filter.unwrap_or_default();
        let (from, to) = epochs(filter.from_epoch, filter.to_epoch)?;
        Ok(vec![
            from.map(Value::Integer),
            to.map(Value::Integer),
            Some(Value::Texts(filter.market_ids)),
            Some(Value::Texts(filter.asset_ids)),
        ])
    }

    fn node(row: &RowReader<'_>) -> Result<EpochRewardSummary, ReadError> {
        Ok(EpochRewardSummary {
            epoch: row.unsigned("epoch_id")?,
            asset_id: row.get("asset_id")?,
            market_id: row.get("market_id")?,
            reward_type: row.get("reward_type")?,
            amount: row.whole("amount")?.unwrap_or_default(),
        })
    }
}

/// The bounds, both inclusive. Epochs above the greatest that can be stored are replaced by it.
fn epochs(from: Option<u64>, to: Option<u64>) -> Result<(Option<i64>, Option<i64>), Problem> {
    if let Some((from, to)) = from.zip(to).filter(|(from, to)| to < from) {
        let problem = Problem::invalid(FILTER, "the range of epochs is inverted");
        return Err(problem.with_inner(format!("filter.fromEpoch {from}, filter.toEpoch {to}")));
    }
    let stored = |epoch: Option<u64>| epoch.map(|epoch| i64::try_from(epoch).unwrap_or(i64::MAX));
    Ok((stored(from), stored(to)))
}
