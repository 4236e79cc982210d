//! The totals of the tables of a list.

use mesh_history::TableTotals;

use crate::fixture::{History, Plan, START_NS};

#[tokio::test]
async fn a_table_has_the_blocks_rows_and_bytes_of_the_segments_that_have_it() {
    let plans = [
        Plan::new(1, 1, 10).with("trades", "id\n1\n2\n"),
        Plan::new(2, 11, 20).with("orders", "id,size\n").with("trades", "id,size\n3,\"4\n\"\n"),
        Plan::new(2, 31, 40).with("orders", "id,size\n5,6\n").with("trades", "id,size\n"),
    ];
    let list = History::of(&plans).await.store.list().await.unwrap();
    let totals = list.totals();
    assert_eq!(totals.keys().copied().collect::<Vec<_>>(), ["orders", "trades"]);
    let trades = TableTotals {
        height_from: 1,
        height_to: 40,
        block_time_from: START_NS + 1_000_000_000,
        block_time_to: START_NS + 40_000_000_000,
        rows: 3,
        bytes: 7 + 15 + 8,
        segments: 3,
        database_versions: [1, 2].into(),
    };
    assert_eq!(totals["trades"], trades);
    let orders = &totals["orders"];
    assert_eq!((orders.height_from, orders.height_to, orders.segments), (11, 40, 2));
    assert_eq!((orders.rows, orders.bytes), (1, 8 + 12));
    assert_eq!(orders.database_versions, [2].into());
}

#[tokio::test]
async fn a_list_without_segments_has_no_totals() {
    assert!(History::new().store.list().await.unwrap().totals().is_empty());
}
