//! Exports against plain concatenation, read by an independent ZIP reader.

use rand::Rng;

use crate::{History, Plan, START_NS, concatenated, entries, rng, table, unzip};

/// Checks the export of a table over the whole history.
async fn check(history: &History, plans: &[Plan], table: &str) {
    let (from, to) = (plans[0].from, plans[plans.len() - 1].to);
    let layout = history.layout(table, from, to).await;
    let zip = history.export(&layout, 100_000).await;
    assert_eq!(zip.len() as u64, layout.length);
    assert_eq!(crc32c::crc32c(&zip), layout.crc32c);
    let members = concatenated(plans, table);
    assert_eq!(unzip(&zip).await, members);
    let mut rows = 0;
    for (_, text) in &members {
        rows += mesh_history::RecordSplitter::default().count(text) - 1;
    }
    assert_eq!(layout.rows, rows);
    for entry in entries(&zip).await {
        assert_eq!((entry.attributes, entry.extra), (0, 0), "{}", entry.name);
    }
}

#[tokio::test]
async fn an_export_is_the_concatenation_of_its_segments() {
    let mut rng = rng(11);
    for _ in 0..12 {
        let mut plans = Vec::new();
        let (mut from, mut version, mut columns) = (1, 1, vec!["id", "value", "block_time"]);
        for _ in 0..rng.random_range(1..7) {
            if rng.random_ratio(1, 3) {
                version += 1;
                match rng.random_range(0..3) {
                    0 => columns.push("\"a new, \"\"odd\"\"\nname\""),
                    1 => columns[1] = "renamed",
                    _ => {}
                }
            }
            let to = from + rng.random_range(0..2000);
            let rows = [0, 1, 40, 3000][rng.random_range(0..4)];
            let mut plan = Plan::new(version, from, to).with("trades", table(&mut rng, &columns, rows, 500));
            plan.chain_id = "odd/chain-1-2 é".to_owned();
            plans.push(plan.with("orders", table(&mut rng, &["id"], 0, 0)));
            from = to + 1;
        }
        let history = History::of(&plans).await;
        check(&history, &plans, "trades").await;
        // Without a row in any segment: only a header for each run.
        check(&history, &plans, "orders").await;
    }
}

#[tokio::test]
async fn rows_have_no_longest() {
    let mut rng = rng(12);
    let noise: String = (0..100_000).map(|_| char::from(rng.random_range(b'#'..=b'~'))).collect();
    let plan = |from| Plan::new(1, from, from + 9);
    let plans = [
        plan(1).with("trades", format!("id,note\n1,\"{}\"\n", "a\r\nb\"\"".repeat(3 << 20))),
        plan(11).with("trades", format!("id,note\n2,\"{noise}\"\n3,\n")),
        plan(21).with("trades", format!("id,note\n2,{}\n3,\n", noise.replace(',', "").repeat(17))),
        plan(31).with("trades", table(&mut rng, &["id", "note"], 20, 70_000)),
    ]
    .map(|plan| Plan { level: 1, ..plan });
    check(&History::of(&plans).await, &plans, "trades").await;
}

#[tokio::test]
async fn rows_that_repeat_the_header_do_not_refer_back_into_it() {
    // Different headers of the same length before the same rows, to detect references into the wrong header.
    let mut rng = rng(13);
    let rows = "identifier_of_the_trade,price_of_the_trade\n".repeat(50);
    let noise = table(&mut rng, &["identifier_of_the_trade", "price_of_the_trade"], 50, 3000);
    let plans = [
        Plan::new(1, 1, 10).with("trades", format!("identifier_of_the_trade,price_of_the_trade\n{rows}")),
        Plan::new(1, 11, 20).with("trades", noise),
        Plan::new(1, 21, 30).with("trades", format!("identifier_of_the_trade,price_of_the_trade\n{rows}")),
    ];
    check(&History::of(&plans).await, &plans, "trades").await;
}

#[tokio::test]
async fn a_last_row_without_line_feed_gets_one() {
    let plans = [
        Plan::new(1, 1, 10).with("trades", "id,note\n1,a"),
        Plan::new(1, 11, 20).with("trades", "id,note"),
        Plan::new(1, 21, 30).with("trades", "id,note\n2,\"b\"\n"),
    ];
    let history = History::of(&plans).await;
    let layout = history.layout("trades", 1, 30).await;
    let members = unzip(&history.export(&layout, 1 << 20).await).await;
    assert_eq!(members, [("mesh-trades-1-1-30.csv".to_owned(), b"id,note\n1,a\n2,\"b\"\n".to_vec())]);
    assert_eq!(layout.rows, 2);
}

#[tokio::test]
async fn another_header_begins_another_member_whatever_the_version_says() {
    let plan = |from| Plan::new(1, from, from + 9);
    let plans = [
        plan(1).with("trades", "id,note\n1,a\n"),
        plan(11).with("trades", "id,name\n2,b\n"),
        plan(21).with("trades", "id,name\n3,c\n"),
        // The same names, written another way.
        plan(31).with("trades", "\"id\",name\n4,d\n"),
    ];
    let history = History::of(&plans).await;
    check(&history, &plans, "trades").await;
    let zip = history.export(&history.layout("trades", 1, 40).await, 1 << 20).await;
    assert_eq!(unzip(&zip).await.len(), 3);
}

#[tokio::test]
async fn members_carry_the_time_of_their_last_block() {
    let plans = [
        Plan::new(1, 1, 11).with("trades", "id\n1\n"),
        Plan::new(1, 12, 21).with("trades", "id\n2\n"),
        Plan::new(2, 22, 33).with("trades", "id\n3\n"),
    ];
    let history = History::of(&plans).await;
    let zip = history.export(&history.layout("trades", 1, 33).await, 1 << 20).await;
    let dates: Vec<String> = entries(&zip).await.into_iter().map(|entry| entry.date).collect();
    // START_NS is 10:30:00; odd seconds are rounded down.
    assert_eq!(START_NS, 1_687_257_000_000_000_000);
    assert_eq!(dates, ["2023-06-20 10:30:20", "2023-06-20 10:30:32"]);
}

#[tokio::test]
async fn the_same_history_gives_the_same_bytes_from_every_store() {
    let plans: Vec<Plan> = (0..5)
        .map(|n| Plan::new(1, n * 10 + 1, n * 10 + 10))
        .map(|plan| plan.clone().with("trades", table(&mut rng(plan.from), &["id", "note"], 400, 900)))
        .collect();
    let (one, other) = (History::of(&plans).await, History::of(&plans).await);
    let (first, second) = (one.layout("trades", 11, 40).await, other.layout("trades", 11, 40).await);
    assert_eq!((&first.fingerprint, first.crc32c), (&second.fingerprint, second.crc32c));
    assert_eq!(one.export(&first, 1000).await, other.export(&second, 1 << 20).await);
    assert_eq!(first.file_name, "mesh-trades-11-40.zip");
    let fingerprints =
        [one.layout("trades", 11, 30).await.fingerprint, one.layout("trades", 1, 40).await.fingerprint];
    assert!(!fingerprints.contains(&first.fingerprint));
}
