//! ListEpochRewardSummaries: rewards summed over parties per epoch, market, asset and reward type.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, ReadError, Row, Value};
use proto_msgs::{
    numbers::list_epoch_reward_summaries::{FILTER, SUMMARIES as FAILED},
    v2::{
        EpochRewardSummary, EpochRewardSummaryEdge, EpochRewardSummaryPage, ListEpochRewardSummariesReply,
        ListEpochRewardSummariesRequest,
    },
};

use crate::{Query, paging};

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
    own_indexes: &[&["market_id"], &["asset_id"], &["market_id", "asset_id"]],
};

impl Handler<Ask<ListEpochRewardSummariesRequest>> for Query {
    type Result = AnswerFuture<ListEpochRewardSummariesReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<ListEpochRewardSummariesRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let filter = request.filter.unwrap_or_default();
            let window = paging::window(&SUMMARIES, request.pagination.as_ref(), sizes)?;
            let (from, to) = epochs(filter.from_epoch, filter.to_epoch)?;
            let filters = vec![
                from.map(Value::Integer),
                to.map(Value::Integer),
                Some(Value::Texts(filter.market_ids)),
                Some(Value::Texts(filter.asset_ids)),
            ];
            let page = paging::read(&store, &SUMMARIES, &window, filters, summary).await;
            let page = page.map_err(|error| error.problem(FAILED))?;
            let edge = |(node, cursor)| EpochRewardSummaryEdge { node: Some(node), cursor };
            let edges = page.edges.into_iter().map(edge).collect();
            let summaries = Some(EpochRewardSummaryPage { edges, page_info: Some(page.info) });
            Ok(Answer::at(page.head, ListEpochRewardSummariesReply { summaries }))
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

fn summary(row: &Row) -> Result<EpochRewardSummary, ReadError> {
    let epoch: i64 = row.try_get("epoch_id")?;
    Ok(EpochRewardSummary {
        epoch: u64::try_from(epoch).map_err(|_| ReadError::Unreadable(format!("epoch {epoch}")))?,
        asset_id: row.try_get("asset_id")?,
        market_id: row.try_get("market_id")?,
        reward_type: row.try_get("reward_type")?,
        amount: row.try_get("amount")?,
    })
}
