//! The demo network against a real PostgreSQL with the real schema.

use std::time::Instant;

use futures_util::TryStreamExt;
use mesh_demo::{DemoError, Plan, write_history};
use mesh_store::migrate::columns;
use mesh_testbed::Database;
use tokio_postgres::Client;

use crate::parsed::{history, rows_of};

/// The output of `COPY ... TO STDOUT` for a table.
async fn copy_out(client: &Client, table: &str) -> String {
    let sql = format!("COPY (SELECT {} FROM {table}) TO STDOUT (FORMAT csv)", columns(table).join(", "));
    let chunks: Vec<_> = client.copy_out(&sql).await.unwrap().try_collect().await.unwrap();
    String::from_utf8(chunks.concat()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_history_loads_and_comes_out_as_it_went_in() {
    let database = Database::fresh().await;
    let plan = Plan::default();
    let begun = Instant::now();
    let mut steps = Vec::new();
    let written =
        write_history(database.url(), &plan, |done, total| steps.push((done, total))).await.unwrap();
    println!("{} rows of {} blocks in {:?}", written.rows, written.blocks, begun.elapsed());
    assert_eq!(written.blocks, plan.blocks);
    assert_eq!((steps[0], steps[steps.len() - 1]), ((0, 5_000), (5_000, 5_000)));

    let rows = rows_of(&history(plan.clone()));
    assert_eq!(rows.total(), written.rows);
    let client = database.connect().await;
    client.batch_execute("SET TIME ZONE 'UTC'").await.unwrap();
    for table in rows.tables() {
        println!("{table:28} {:8} rows {:10} bytes", rows.count(table), rows.text(table).len());
        let mut sent: Vec<&str> = records(rows.text(table));
        let stored = copy_out(&client, table).await;
        let mut stored: Vec<&str> = records(&stored);
        sent.sort_unstable();
        stored.sort_unstable();
        assert!(sent == stored, "{table}: {:?}", first_difference(&sent, &stored));
    }

    // A second load finds nothing to do; another plan is refused and leaves the store as it is.
    let again = write_history(database.url(), &plan, |_, _| {}).await.unwrap();
    assert_eq!((again.blocks, again.rows), (0, 0));
    let other = write_history(database.url(), &Plan { seed: 2, ..plan }, |_, _| {}).await;
    assert!(matches!(other, Err(DemoError::Foreign(_))), "{other:?}");
}

fn first_difference<'a>(a: &[&'a str], b: &[&'a str]) -> Option<(&'a str, &'a str)> {
    a.iter().zip(b).find(|(a, b)| a != b).map(|(a, b)| (*a, *b))
}

/// Splits CSV text into records; line breaks inside quotes do not separate.
fn records(text: &str) -> Vec<&str> {
    let (mut records, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => inside = !inside,
            b'\n' if !inside => {
                records.push(&text[start..=at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    records
}
