//! ListEpochRewardSummaries: rewards summed over parties.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    paging::{
        list::{List, Row, number, text},
        page::View,
    },
    recorded_network::{
        check::{UNKNOWN, with_check},
        recording::Recording,
    },
};

const PATH: &str = "/api/v2/rewards/epoch/summaries";

fn all(recording: &Recording) -> View {
    let mut sums: BTreeMap<(i64, String, String, String), i128> = BTreeMap::new();
    for row in recording.table("rewards").rows() {
        let [market, asset, kind] =
            ["market_id", "asset_id", "reward_type"].map(|column| row.text(column).to_owned());
        let amount = row.maybe("amount").map_or(0, |amount| amount.parse::<i128>().unwrap());
        *sums.entry((row.number("epoch_id"), market, asset, kind)).or_default() += amount;
    }
    let rows = sums.into_iter().map(|((epoch, market, asset, kind), amount)| {
        let key = vec![number(epoch), text(&market), text(&asset), text(&kind)];
        let node = json!({
            "epoch": epoch.to_string(),
            "assetId": asset,
            "marketId": market,
            "rewardType": kind,
            "amount": amount.to_string(),
        });
        Row { key, node }
    });
    View { list: List::Summaries, path: PATH.to_owned(), rows: rows.collect() }
}

fn assets(all: &View) -> BTreeSet<&str> {
    all.rows.iter().map(|row| row.node["assetId"].as_str().unwrap()).collect()
}

fn epoch_of(node: &Value) -> u64 {
    node["epoch"].as_str().unwrap().parse().unwrap()
}

/// Every subset of the ids, including the empty one.
fn subsets<'a>(ids: &[&'a str]) -> Vec<Vec<&'a str>> {
    ids.iter().fold(vec![Vec::new()], |sets, id| {
        let with: Vec<Vec<&str>> =
            sets.iter().map(|set| set.iter().copied().chain([*id]).collect()).collect();
        sets.into_iter().chain(with).collect()
    })
}

#[test]
fn rewards_are_summed_over_the_parties_of_an_epoch() {
    with_check("ListEpochRewardSummaries, all and page by page", async |recording, check| {
        let all = all(recording);
        assert!(all.rows.len() < recording.table("rewards").len(), "some reward is shared by parties");
        all.compare(check, PATH).await;
        for size in [1, 2, 3, 5, 8, 1000] {
            all.walk(check, PATH, size).await;
        }
    });
}

#[test]
fn summaries_are_found_by_every_set_of_assets_and_every_range_of_epochs() {
    with_check("ListEpochRewardSummaries, by assets and epochs", async |recording, check| {
        let all = all(recording);
        let known: Vec<&str> = assets(&all).into_iter().chain([UNKNOWN]).collect();
        let around = all.rows.iter().flat_map(|row| (epoch_of(&row.node) - 1)..=(epoch_of(&row.node) + 1));
        let around: BTreeSet<Option<u64>> = around.chain([0, u64::MAX]).map(Some).chain([None]).collect();
        for assets in subsets(&known) {
            for (from, to) in around.iter().flat_map(|from| around.iter().map(move |to| (*from, *to))) {
                let mut path = format!("{PATH}?");
                for asset in &assets {
                    path.push_str(&format!("&filter.assetIds={asset}"));
                }
                for (name, epoch) in [("fromEpoch", from), ("toEpoch", to)] {
                    if let Some(epoch) = epoch {
                        path.push_str(&format!("&filter.{name}={epoch}"));
                    }
                }
                if from.zip(to).is_some_and(|(from, to)| to < from) {
                    // Checked for one set only: the refusal does not depend on the assets.
                    if assets.is_empty() {
                        check.refused(&path, 400, 3, 10029).await;
                    }
                    continue;
                }
                let found = all.filtered(|node| {
                    let epoch = epoch_of(node);
                    (assets.is_empty() || assets.iter().any(|asset| node["assetId"] == *asset))
                        && from.is_none_or(|from| epoch >= from)
                        && to.is_none_or(|to| epoch <= to)
                });
                found.compare(check, &path).await;
            }
        }
    });
}

#[test]
fn summaries_are_found_by_market_and_the_recording_ties_no_reward_to_one() {
    with_check("ListEpochRewardSummaries, by market", async |recording, check| {
        let all = all(recording);
        let markets = recording.table("markets");
        let markets: BTreeSet<&str> = markets.rows().map(|row| row.text("id")).chain([UNKNOWN]).collect();
        for market in &markets {
            let found = all.filtered(|node| node["marketId"] == *market);
            found.compare(check, &format!("{PATH}?filter.marketIds={market}")).await;
        }
        let together: String = markets.iter().map(|market| format!("&filter.marketIds={market}")).collect();
        all.filtered(|_| false).compare(check, &format!("{PATH}?{together}")).await;
        // Empty elements are dropped, so this is no filter.
        all.compare(check, &format!("{PATH}?filter.marketIds=&filter.assetIds=&filter.assetIds=")).await;
    });
}

#[test]
fn pages_of_filtered_summaries_hold_every_row_once() {
    with_check("ListEpochRewardSummaries, filtered page by page", async |recording, check| {
        let all = all(recording);
        let epochs: BTreeSet<u64> = all.rows.iter().map(|row| epoch_of(&row.node)).collect();
        for asset in assets(&all) {
            for (from, to) in epochs.iter().flat_map(|from| epochs.range(from..).map(move |to| (*from, *to)))
            {
                let found =
                    all.filtered(|node| node["assetId"] == asset && (from..=to).contains(&epoch_of(node)));
                let upper = asset.to_uppercase();
                let path =
                    format!("{PATH}?filter.assetIds={upper}&filter.fromEpoch={from}&filter.toEpoch={to}");
                found.walk(check, &path, 2).await;
            }
        }
    });
}
