//! ListEpochRewardSummaries: rewards summed over parties per epoch, market, asset and reward type.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{ListKey, Parameter, ReadError, Row};
use proto_msgs::{
    numbers::list_epoch_reward_summaries::{FILTER, SUMMARIES},
    v2::{
        EpochRewardSummary, EpochRewardSummaryEdge, EpochRewardSummaryPage, ListEpochRewardSummariesReply,
        ListEpochRewardSummariesRequest,
    },
};

use crate::{
    Query,
    paging::{frame, page_info, window},
};

/// Sort key of reward summaries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    epoch: i64,
    market: String,
    asset: String,
    reward_type: String,
}

impl ListKey for Key {
    const LIST: &'static str = "epochReward";

    fn values(&self) -> Vec<String> {
        vec![self.epoch.to_string(), self.market.clone(), self.asset.clone(), self.reward_type.clone()]
    }

    fn from_values(values: &[String]) -> Option<Self> {
        match values {
            [epoch, market, asset, reward_type] => Some(Self {
                epoch: epoch.parse().ok()?,
                market: market.clone(),
                asset: asset.clone(),
                reward_type: reward_type.clone(),
            }),
            _ => None,
        }
    }
}

impl Handler<Ask<ListEpochRewardSummariesRequest>> for Query {
    type Result = AnswerFuture<ListEpochRewardSummariesReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<ListEpochRewardSummariesRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let failed = |error: ReadError| error.problem(SUMMARIES);
            let filter = request.filter.unwrap_or_default();
            let window = window::<Key>(request.pagination.as_ref(), sizes)?;
            let (from, to) = epochs(filter.from_epoch, filter.to_epoch)?;
            let non_empty = |list: Vec<String>| (!list.is_empty()).then_some(list);
            let (assets, markets) = (non_empty(filter.asset_ids), non_empty(filter.market_ids));
            let position = window.position();
            let (descending, limit) = (window.descending(), window.rows());
            let epoch = position.map(|key| key.epoch);
            let market = position.map(|key| key.market.as_str());
            let asset = position.map(|key| key.asset.as_str());
            let reward_type = position.map(|key| key.reward_type.as_str());
            let mut parameters: Vec<Parameter<'_>> =
                vec![&from, &to, &descending, &limit, &epoch, &market, &asset, &reward_type];
            let sql = match (&markets, &assets) {
                (Some(markets), assets) => {
                    parameters.extend([markets as Parameter<'_>, assets]);
                    include_str!("../../sql/list_epoch_reward_summaries_by_market.sql")
                }
                (None, Some(assets)) => {
                    parameters.push(assets);
                    include_str!("../../sql/list_epoch_reward_summaries_by_asset.sql")
                }
                (None, None) => include_str!("../../sql/list_epoch_reward_summaries.sql"),
            };
            let rows = store.list(sql, &parameters).await.map_err(failed)?;
            let (head, behind) = frame(&rows).map_err(failed)?;
            let summaries: Result<_, _> = rows.iter().filter_map(|row| summary(row).transpose()).collect();
            let page = window.page(summaries.map_err(failed)?, behind);
            let page_info = Some(page_info(&page));
            let edge = |(cursor, node)| EpochRewardSummaryEdge { node: Some(node), cursor };
            let edges = page.edges.into_iter().map(edge).collect();
            let summaries = Some(EpochRewardSummaryPage { edges, page_info });
            Ok(Answer::at(head, ListEpochRewardSummariesReply { summaries }))
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

fn summary(row: &Row) -> Result<Option<(Key, EpochRewardSummary)>, ReadError> {
    let Some(epoch) = row.try_get::<_, Option<i64>>("epoch_id")? else { return Ok(None) };
    let key = Key {
        epoch,
        market: row.try_get("market_id")?,
        asset: row.try_get("asset_id")?,
        reward_type: row.try_get("reward_type")?,
    };
    let summary = EpochRewardSummary {
        epoch: u64::try_from(epoch).map_err(|_| ReadError::Unreadable(format!("epoch {epoch}")))?,
        asset_id: key.asset.clone(),
        market_id: key.market.clone(),
        reward_type: key.reward_type.clone(),
        amount: row.try_get("amount")?,
    };
    Ok(Some((key, summary)))
}
