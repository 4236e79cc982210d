//! Segments of several schema versions: X6 with new, renamed and dropped columns and tables, and H4's special
//! case of rows that repeat the header before them.

use mesh_tests::{
    problem::assert_problem,
    zip::{Member, assert_read_by_programs, members},
};
use rand::{SeedableRng, rngs::SmallRng};

use super::{
    handmade::{HandmadeMesh, HandmadeSegments, Plan, expected, noise},
    *,
};

/// All of one length, so that a reference into the wrong header would give bytes of the right length.
const HEADERS: [&str; 3] = [
    "identifier_of_a_trade,the_price_of_a_trade_1\n",
    "identifier_of_a_trade,the_price_of_a_trade_2\n",
    "identifier_of_a_trade,the_price_of_a_trade_3\n",
];

fn plans() -> Vec<Plan> {
    let mut dice = SmallRng::seed_from_u64(61);
    let mut repeated = |header: usize| {
        // Random text at the end, so that the next segment's rows cannot refer back to a header by chance.
        [HEADERS[header].repeat(40).into_bytes(), noise(&mut dice, 70_000)].concat()
    };
    let orders = |columns: &str, rows: &str| format!("{columns}\n{rows}");
    vec![
        // Rewards are new in version 2, deposits are dropped by version 3.
        Plan::new(1, 1, 10)
            .with("trades", repeated(0))
            .with("orders", orders("id,size", "1,5\n2,\n"))
            .with("deposits", "id,amount\n1,\"\"\n"),
        Plan::new(1, 11, 20)
            .with("trades", repeated(0))
            .with("orders", orders("id,size", ""))
            .with("deposits", "id,amount\n"),
        // A column is added at the end.
        Plan::new(2, 21, 30)
            .with("trades", repeated(1))
            .with("orders", orders("id,size,note", "3,6,\"a\r\n\"\"b\"\"\"\n"))
            .with("deposits", "id,amount\n2,\n")
            .with("rewards", "id\n7\n"),
        Plan::new(2, 31, 35)
            .with("trades", HEADERS[1])
            .with("orders", orders("id,size,note", "4,,\"\"\n"))
            .with("deposits", "id,amount\n")
            .with("rewards", "id\n8\n"),
        // One is renamed, another dropped.
        Plan::new(3, 36, 40)
            .with("trades", repeated(2))
            .with("orders", orders("id,remark", "5,é 文\n6,\\N\n"))
            .with("rewards", "id\n"),
        // Rows of an old version after newer ones are their own run.
        Plan::new(2, 41, 50)
            .with("trades", repeated(1))
            .with("orders", orders("id,size,note", ""))
            .with("deposits", "id,amount\n3,NULL\n")
            .with("rewards", "id\n9\n"),
    ]
}

#[tokio::test]
async fn a_download_over_several_schema_versions_has_a_member_for_each_run_of_one() {
    let served = HandmadeSegments::write(plans()).await.serve(1).await;
    let (mesh_client, plans) = (served.mesh_client(), &served.segments.plans);
    let mut downloads = Vec::new();
    let mut get = async |table: &str, range: std::ops::Range<usize>| {
        let plans = &plans[range];
        let path = HandmadeMesh::path(table, plans[0].from, plans[plans.len() - 1].to);
        let answer = mesh_client.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let members = members(&answer.body).await;
        assert_eq!(members, expected(plans, table), "{path}");
        let rows = members.iter().map(|(_, text)| {
            csv::ReaderBuilder::new().flexible(true).from_reader(&text[..]).records().count()
        });
        assert_eq!(answer.header("x-total-rows"), Some(&*rows.sum::<usize>().to_string()), "{path}");
        let count = members.len();
        downloads.push((answer.body, members));
        count
    };
    for table in ["trades", "orders"] {
        assert_eq!(get(table, 0..6).await, 4);
        assert_eq!(get(table, 1..3).await, 2);
        for from in 0..6 {
            for to in from + 1..=6 {
                get(table, from..to).await;
            }
        }
    }
    assert_eq!(get("rewards", 2..6).await, 3);
    assert_eq!(get("deposits", 0..4).await, 2);
    let zips: Vec<(&[u8], &[Member])> =
        downloads.iter().map(|(zip, members)| (&zip[..], &members[..])).collect();
    assert_read_by_programs("schema versions", &zips);
}

#[tokio::test]
async fn a_table_that_a_segment_does_not_have_is_refused_over_it() {
    let served = HandmadeSegments::write(plans()).await.serve(1).await;
    let mesh_client = served.mesh_client();
    for (table, from, to, without) in [
        ("rewards", 1, 50, "made-1-1-1-10.zip"),
        ("rewards", 11, 30, "made-1-1-11-20.zip"),
        ("deposits", 21, 50, "made-1-3-36-40.zip"),
        ("withdrawals", 41, 50, "made-1-2-41-50.zip"),
    ] {
        let answer = mesh_client.get(&HandmadeMesh::path(table, from, to)).await;
        assert_eq!(assert_problem(&answer, 404, 5, 240_014).inner, without, "{table}");
        let lines =
            get(&mesh_client, &HandmadeMesh::path(table, from, to), &[("accept", "application/x-ndjson")])
                .await;
        assert_problem(&lines, 404, 5, 240_014);
    }
}
