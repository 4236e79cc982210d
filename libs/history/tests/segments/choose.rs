//! Which ranges can be exported (X1, X2, X3).

use mesh_history::{Layout, LayoutError};

use crate::fixture::{History, Plan};

fn plan(from: u64, to: u64) -> Plan {
    Plan::new(1, from, to).with("trades", "id\n1\n")
}

async fn refused(history: &History, from: u64, to: u64) -> String {
    let list = history.store.list().await.unwrap();
    Layout::of(&list, "trades", from, to).unwrap_err().to_string()
}

#[tokio::test]
async fn ranges_begin_and_end_where_segments_do() {
    // One closed early at 1500, a gap from 3001 to 4000.
    let plans = [plan(1001, 1500), plan(1501, 2000), plan(2001, 3000), plan(4001, 5000)];
    let history = History::of(&plans).await;
    for (from, to) in [(1001, 1500), (1001, 3000), (1501, 2000), (4001, 5000)] {
        let layout = history.layout("trades", from, to).await;
        assert_eq!(layout.file_name, format!("mesh-trades-{from}-{to}.zip"));
    }
    let inside = |height, below: &str, above: &str| {
        format!("block {height} is not a segment boundary; nearest: {below}{above}")
    };
    assert_eq!(refused(&history, 1600, 2000).await, inside(1600, "1501, ", "2001"));
    assert_eq!(refused(&history, 1001, 1600).await, inside(1600, "1500, ", "2000"));
    assert_eq!(refused(&history, 1001, 1001).await, inside(1001, "1500", ""));
    assert_eq!(refused(&history, 4500, 5000).await, inside(4500, "4001", ""));
    assert_eq!(refused(&history, 1600, 9999).await, inside(1600, "1501, ", "2001"));
    assert_eq!(refused(&history, 1001, 5000).await, "missing blocks 3001-4000");
    assert_eq!(refused(&history, 1, 1500).await, "missing blocks 1-1000");
    assert_eq!(refused(&history, 1, 6000).await, "missing blocks 1-6000");
    assert_eq!(refused(&history, 2001, 3500).await, "missing blocks 3001-3500");
    assert_eq!(refused(&history, 3500, 3600).await, "missing blocks 3500-3600");
    assert_eq!(refused(&history, 6001, 7000).await, "missing blocks 6001-7000");
    assert_eq!(refused(&history, 0, u64::MAX).await, format!("missing blocks 0-{}", u64::MAX));
    assert_eq!(refused(&history, 2000, 1501).await, "block 2000 is above block 1501");
}

#[tokio::test]
async fn an_empty_store_holds_nothing() {
    assert_eq!(refused(&History::new(), 1, 1000).await, "missing blocks 1-1000");
}

#[tokio::test]
async fn every_segment_must_have_the_table_and_be_of_one_chain() {
    let mut stranger = plan(21, 30);
    stranger.chain_id = "other".to_owned();
    let plans = [Plan::new(1, 1, 10).with("orders", "id\n"), plan(11, 20), stranger];
    let history = History::of(&plans).await;
    assert_eq!(refused(&history, 1, 20).await, "segment mesh-1-1-10.zip has no table trades");
    assert_eq!(refused(&history, 11, 30).await, "segment other-1-21-30.zip is of chain other, not mesh");
    assert_eq!(history.layout("trades", 11, 20).await.rows, 1);
}

#[tokio::test]
async fn overlapping_segments_are_not_chosen_between() {
    let history = History::of(&[plan(1, 10), plan(1, 20)]).await;
    let list = history.store.list().await.unwrap();
    let refused = Layout::of(&list, "trades", 1, 20).unwrap_err();
    assert!(matches!(refused, LayoutError::Overlap(..)), "{refused}");
}
