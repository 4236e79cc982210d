//! The demo network against a real PostgreSQL with the real schema.

use mesh_demo::{DemoError, Plan, Record, write_history};
use mesh_store::schema::columns;
use mesh_testbed::Database;
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use crate::parsed::default_rows;

/// All rows of a table, sorted.
async fn stored(client: &Client, table: &str) -> Vec<Record> {
    let sql = format!("SELECT {} FROM {table}", columns(table).join(", "));
    let messages = client.simple_query(&sql).await.unwrap();
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let record = |row: &SimpleQueryRow| (0..row.len()).map(|at| row.get(at).map(normal)).collect();
    let mut records: Vec<Record> = rows.map(record).collect();
    records.sort_unstable();
    records
}

/// A value in the form that all equal values have: JSON without blanks.
fn normal(value: &str) -> String {
    let json = value.starts_with(['{', '[']).then(|| serde_json::from_str::<serde_json::Value>(value).ok());
    json.flatten().map_or_else(|| value.to_owned(), |json| json.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_history_loads_and_comes_out_as_it_went_in() {
    let database = Database::fresh().await;
    let plan = Plan::default();
    let mut steps = Vec::new();
    write_history(database.url(), &plan, |done, total| steps.push((done, total))).await.unwrap();
    assert_eq!((steps[0], steps[steps.len() - 1]), ((0, 5_000), (5_000, 5_000)));

    let rows = default_rows();
    let client = database.connect().await;
    client.batch_execute("SET TIME ZONE 'UTC'").await.unwrap();
    for table in rows.tables() {
        let stored = stored(&client, table).await;
        let normal = |value: &Option<String>| value.as_deref().map(normal);
        let mut sent: Vec<Record> =
            rows.records(table).iter().map(|row| row.iter().map(normal).collect()).collect();
        sent.sort_unstable();
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
