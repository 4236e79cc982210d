//! Watching (contract section 10): the events of a watch are the answers of plain reads, and come when these
//! change.

mod ends;
mod events;
mod grpc;
mod limits;
mod proxies;
mod web_socket;
mod web_socket_frames;

use std::time::Duration;

use mesh_testbed::{Database, Mesh};
use mesh_tests::fixture;
use tokio_postgres::Client;

/// A read of the store whose answer changes with [`write_withdrawal`].
pub(crate) fn withdrawal() -> String {
    format!("/api/v2/withdrawal/{}", fixture::WITHDRAWAL)
}

/// A read of the store whose answer does not change.
pub(crate) const LIMITS: &str = "/api/v2/network/limits";

/// Shorter than the time in which nothing is looked at without a new block.
const SOON: Duration = Duration::from_millis(800);

/// Adds a block, and in the same transaction a new state of the withdrawal with this reference.
pub(crate) async fn write_block(client: &Client, height: u64, reference: Option<&str>) {
    let at = format!("timestamptz '2023-06-20 11:00:00+00' + {height} * interval '1 second'");
    let mut block = format!("BEGIN; INSERT INTO blocks VALUES ({at}, {height}, '{height:064x}');");
    if let Some(reference) = reference {
        block += &format!(
            "INSERT INTO withdrawals SELECT id, party_id, amount, asset, status, '{reference}', foreign_tx_hash, \
             created_timestamp, withdrawn_timestamp, ext, '{height:064x}', {at} FROM withdrawals \
             WHERE id = '{}' ORDER BY block_time DESC LIMIT 1;",
            fixture::WITHDRAWAL
        );
    }
    client.batch_execute(&(block + "COMMIT")).await.expect("a block fits");
}

/// Asserts that streams which an edge ends at its stop end soon, and one after the other.
fn assert_spread(mut ended_after: Vec<Duration>) {
    ended_after.sort();
    let (first, last) = (ended_after[0], ended_after[ended_after.len() - 1]);
    assert!(last < Duration::from_secs(5) && last - first > Duration::from_secs(1), "{ended_after:?}");
}

/// Adds a trade and a block, so that a page of trades changes.
async fn write_trade(client: &Client, height: u64) {
    client.batch_execute(&limits::trades(1000 + height, 1000 + height)).await.unwrap();
    write_block(client, height, None).await;
}

/// A mesh without export over its own fixture database.
pub(crate) async fn start(env: &[(&str, &str)]) -> (Database, Mesh, mesh_tests::MeshClient) {
    fixture::start(|setup| {
        env.iter().fold(setup.without(&["export"]), |setup, (name, value)| setup.env(*name, *value))
    })
    .await
}
