//! Compares stored blocks with what the node and the decoder give today.

use std::collections::BTreeSet;

use futures_util::TryStreamExt as _;
use mesh_ingest::DecodedBlock;
use rand::{SeedableRng as _, rngs::SmallRng, seq::index};

use super::{
    args::CheckArgs,
    place::Variables,
    recorded::{fetch_all, unfetched},
};
use crate::{
    failure::{Failure, failed},
    terminal,
};

pub(super) async fn check(args: &CheckArgs) -> Result<(), Failure> {
    let variables = Variables::of(&args.place.home).await?;
    let (nodes, decoder) =
        (variables.nodes(args.place.node.as_deref())?, variables.decoder(&args.place).await?);
    let store = variables.store(args.postgres.as_deref()).await?;
    let status = nodes.status().await.map_err(|error| unfetched("", &error))?;
    let newest = store.chain().await?.head.map_or(0, |head| head.height);
    let oldest = store.oldest().await?.unwrap_or(1);
    let (from, to) = (oldest.max(status.earliest), newest.min(status.latest));
    if from > to {
        return Err(failed!(
            "the store has blocks {oldest} to {newest}, the node {} to {}: there are none to compare",
            status.earliest,
            status.latest
        ));
    }
    let heights = choose(from..=to, args.blocks, args.seed);
    let (mut differences, mut rows) = (0, 0);
    let mut blocks = fetch_all(&nodes, heights.iter().copied());
    while let Some(block) = blocks.try_next().await? {
        let height = block.height;
        let before = store.block(height.saturating_sub(1)).await?;
        let decoded = decoder.decode(&block).await.map_err(|error| failed!("block {height}: {error}"))?;
        rows += decoded.len();
        let prepared = DecodedBlock::new(&block, decoded).prepare(before.as_ref());
        let (prepared, _) = prepared.map_err(|error| failed!("block {height}: {error}"))?;
        for difference in store.compare(&prepared).await? {
            differences += 1;
            terminal::print(&format!("block {height}: {difference}"))?;
        }
    }
    match differences {
        0 => terminal::print(&format!("{} blocks with {rows} rows are stored as decoded", heights.len())),
        differences => Err(failed!("{differences} rows differ; see the lines above")),
    }
}

/// So many heights of a range, chosen by a seed; all when there are not more.
fn choose(range: std::ops::RangeInclusive<u64>, count: u64, seed: u64) -> BTreeSet<u64> {
    let (from, to) = range.into_inner();
    let [all, count] = [to - from + 1, count].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let mut random = SmallRng::seed_from_u64(seed);
    index::sample(&mut random, all, count.min(all)).into_iter().map(|index| from + index as u64).collect()
}
