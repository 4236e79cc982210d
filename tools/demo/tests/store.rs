//! The demo network against a real PostgreSQL with the real schema.

use futures_util::TryStreamExt;
use mesh_demo::{DemoError, Plan, parse_csv, write_history};
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
    let mut steps = Vec::new();
    write_history(database.url(), &plan, |done, total| steps.push((done, total))).await.unwrap();
    assert_eq!((steps[0], steps[steps.len() - 1]), ((0, 5_000), (5_000, 5_000)));

    let rows = rows_of(&history(plan.clone()));
    let client = database.connect().await;
    client.batch_execute("SET TIME ZONE 'UTC'").await.unwrap();
    for table in rows.tables() {
        let (mut sent, mut stored) = (rows.records(table), parse_csv(&copy_out(&client, table).await));
        sent.sort_unstable();
        stored.sort_unstable();
        let difference = sent.iter().zip(&stored).find(|(sent, stored)| sent != stored);
        assert!(sent == stored, "{table}: {difference:?}");
    }

    // A second load finds nothing to do; another plan is refused and leaves the store as it is.
    let mut steps = Vec::new();
    write_history(database.url(), &plan, |done, _| steps.push(done)).await.unwrap();
    assert_eq!(steps, [plan.blocks]);
    let other = write_history(database.url(), &Plan { seed: 2, ..plan }, |_, _| {}).await;
    assert!(matches!(other, Err(DemoError::Foreign(_))), "{other:?}");
}
