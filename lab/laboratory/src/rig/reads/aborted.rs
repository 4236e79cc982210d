//! Phase "abort": clients disconnect before slow answers come. Their statements must end in the database.

use std::time::Duration;

use mesh::failure::{Failure, cannot};
use mesh_testbed::poll;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_postgres::Client;

use super::{Report, World};
use crate::rig::{
    clients::{connection::Connection, samples::normal_after},
    report::in_ms,
};

/// Number of clients that disconnect.
const CLIENTS: u32 = 100;
/// The list that they request, which the load does not use, and its table, which is locked meanwhile.
const LIST: &str = "/api/v2/delegations";
const TABLE: &str = "delegations_current";
/// Longest time until none of their statements is running.
const GONE_WITHIN: Duration = Duration::from_secs(1);
/// Longest time until the service is normal for the load.
const NORMAL_WITHIN: Duration = Duration::from_secs(2);
/// How long they wait before they disconnect.
const WAITED: Duration = Duration::from_millis(700);
/// A read that takes longer counts as slow.
const SLOW: Duration = Duration::from_millis(250);
const AFTER: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(10);

/// Many clients request different pages of the slow list, and disconnect.
pub(super) async fn abort(world: &World<'_>) -> Result<Report, Failure> {
    // Within a transaction `pg_stat_activity` does not change, so the connection with the lock cannot watch.
    let (holder, watcher) = (world.servers.lock_table(TABLE).await?, world.servers.connect("").await?);
    let from = world.load().now();
    let mut clients = Vec::new();
    for number in 1..=CLIENTS {
        let mut client = open(world).await?;
        let path = format!("{LIST}?pagination.first={number}");
        client
            .send(&path, "")
            .await
            .map_err(|lost| Failure::failed(format!("cannot ask for {path}: {lost}")))?;
        clients.push(client);
    }
    let begun = async || match statements(&watcher).await? {
        0 => Err(Failure::failed("no slow statement was begun")),
        _ => Ok(()),
    };
    poll(SOON, begun).await?;
    sleep(WAITED).await;
    let running = statements(&watcher).await?;
    drop(clients);
    let (aborted, aborted_at) = (Instant::now(), world.load().now());
    let gone = async || match statements(&watcher).await {
        Ok(0) => Ok(aborted.elapsed()),
        _ => Err(()),
    };
    let gone_after = poll(world.play.bound(GONE_WITHIN), gone).await.ok();
    // No statement may start again either.
    sleep_until(aborted + GONE_WITHIN).await;
    let left = statements(&watcher).await?;
    holder.batch_execute("ROLLBACK").await.map_err(|error| cannot("unlock a table", &error))?;
    world.sleep_scaled(AFTER).await;
    let (samples, mut report) = world.load().report("aborted lists", from).await;
    let normal = normal_after(&samples, aborted_at, world.play.bound(SLOW));
    report.figures.normal_after = Some(normal);
    report.none_but_200_and_503();
    report.bar(
        format!("statements left after {}: {left}, at most 0", in_ms(world.play.bound(GONE_WITHIN))),
        left == 0,
    );
    report.bar_at_most("service as usual after the abort", normal, NORMAL_WITHIN);
    let gone = gone_after.map_or_else(|| "never".to_owned(), |after| format!("after {}", in_ms(after)));
    report
        .notes
        .push(format!("{running} statements were running for {CLIENTS} clients; the last was gone {gone}"));
    Ok(report)
}

async fn open(world: &World<'_>) -> Result<Connection, Failure> {
    Connection::open(world.edges.cached).await.map_err(|lost| Failure::failed(lost.to_string()))
}

/// Number of running statements of the slow list.
async fn statements(watcher: &Client) -> Result<i64, Failure> {
    let counted = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'active' AND application_name = 'mesh query'
            AND strpos(query, $1) > 0";
    let row = watcher.query_one(counted, &[&TABLE]).await;
    Ok(row.map_err(|error| cannot("see what the database does", &error))?.get(0))
}
