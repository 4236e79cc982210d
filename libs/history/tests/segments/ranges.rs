//! A read of any range gives that slice of the whole export; reads check the bytes that they return.

use mesh_history::Piece;
use rand::Rng;

use crate::fixture::{History, Plan, rng, table};

async fn large() -> History {
    let mut rng = rng(21);
    let mut plans = Vec::new();
    for n in 0..6 {
        let rows = [0, 3, 4000, 20_000, 1, 6000][n as usize];
        let plan = Plan::new(1 + (n as u32) / 4, n * 100 + 1, n * 100 + 100);
        plans.push(plan.with("trades", table(&mut rng, &["id", "note", "price"], rows, 1500)));
    }
    History::of(&plans).await
}

#[tokio::test]
async fn a_thousand_ranges_are_slices_of_the_whole() {
    let history = large().await;
    let layout = history.layout("trades", 1, 600).await;
    let whole = history.export(&layout, 4 << 20).await;
    assert!(whole.len() > 3 << 20, "several blocks: {}", whole.len());
    let mut rng = rng(22);
    for _ in 0..1000 {
        let start = rng.random_range(0..=whole.len());
        let most = [1, 100, 70_000, 3 << 20][rng.random_range(0..4)];
        let max = rng.random_range(1..=most);
        let bytes = history.store.read(&layout, start as u64, max).await.unwrap();
        assert_eq!(bytes, whole[start..start + bytes.len()]);
        let expected = max.min(whole.len() - start);
        assert!(bytes.len() <= expected && bytes.len() * 2 >= expected, "{} of {expected}", bytes.len());
    }
    assert!(history.store.read(&layout, u64::MAX, 5).await.unwrap().is_empty());
}

#[tokio::test]
async fn long_reads_stop_at_a_blocks_end() {
    let history = large().await;
    let layout = history.layout("trades", 1, 600).await;
    let mut at = 0;
    loop {
        let piece = history.store.read(&layout, at, 2 << 20).await.unwrap();
        at += piece.len() as u64;
        let Some(Piece::Stored { part, range, .. }) = layout.pieces(at..at + 1).next() else {
            if at == layout.length {
                break;
            }
            continue;
        };
        assert!(range.start.is_multiple_of(512 << 10), "{} of {}", range.start, part.stored);
    }
}
