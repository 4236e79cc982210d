//! Where segments end (H7) and when an upgrade is ready (4.11), over two data sets: the demo network, which
//! upgrades at block 3000, and the recorded network, as recorded and with an upgrade added. Without
//! `../shared/data/smoketest-5000` next to the workspace only the demo network is tested.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt, TryStreamExt};
use mesh_demo::{Plan, write_history};
use mesh_store::load::load_folder;
use mesh_testbed::{Database, Mesh, eventually};
use mesh_tests::{client::MeshClient, say};
use serde_json::{Value, json};
use tokio_postgres::Client;

const STATUS: &str = "/api/v2/upgrade/status";
const SEGMENTS: &str = "/api/v2/networkhistory/segments";

/// Tables that triggers maintain.
const DERIVED: [&str; 9] = [
    "assets_current",
    "current_balances",
    "delegations_current",
    "last_block",
    "markets_current",
    "network_parameters_current",
    "positions_current",
    "protocol_upgrade_proposals_current",
    "trades_candle",
];

/// Block of the recorded network to which the upgrade is added.
const ADDED_AT: u64 = 2345;

/// All rows of a data set.
struct Network {
    name: &'static str,
    database: Database,
    /// The block of its approved upgrade.
    upgrade: Option<u64>,
}

impl Network {
    async fn demo() -> Self {
        let database = Database::fresh().await;
        write_history(database.url(), &Plan::default(), |_, _| ()).await.unwrap();
        Self { name: "the demo network", database, upgrade: Some(3000) }
    }

    /// The recorded network; `None` without the recording.
    async fn recorded() -> Option<Self> {
        let folder = mesh_tests::recording()?;
        let database = Database::fresh().await;
        load_folder(database.url(), &folder, |_, _, _| ()).await.unwrap();
        Some(Self { name: "the recorded network", database, upgrade: None })
    }

    /// The recorded network with an upgrade that is approved in its own block, one that is approved too late,
    /// and one that loses its approval.
    async fn recorded_with_upgrade() -> Option<Self> {
        let network = Self::recorded().await?;
        let rows = [
            (ADDED_AT, "v1", "PENDING", 2000),
            (ADDED_AT, "v1", "APPROVED", ADDED_AT),
            (2600, "v2", "PENDING", 2500),
            (2600, "v2", "APPROVED", 2601),
            (3300, "v3", "APPROVED", 3200),
            (3300, "v3", "REJECTED", 3300),
        ];
        let client = network.database.connect().await;
        for (height, tag, status, written_at) in rows {
            let row = format!(
                "INSERT INTO protocol_upgrade_proposals SELECT {height}, '{tag}', '{{}}',
                    'PROTOCOL_UPGRADE_PROPOSAL_STATUS_{status}', 'ab', block_time
                    FROM blocks WHERE height = {written_at}"
            );
            assert_eq!(client.execute(&row, &[]).await.unwrap(), 1, "{row}");
        }
        Some(Self { name: "the recorded network with an upgrade", upgrade: Some(ADDED_AT), ..network })
    }

    /// The expected segments when `head` is the newest block.
    async fn spans(&self, interval: u64, head: u64) -> Vec<(u64, u64)> {
        let approved = self.approved().await;
        assert_eq!(approved, self.upgrade.into_iter().collect(), "{}", self.name);
        let ends = (1..=head).filter(|height| height.is_multiple_of(interval) || approved.contains(height));
        let mut from = 1;
        ends.map(|to| (std::mem::replace(&mut from, to + 1), to)).collect()
    }

    /// Heights of the upgrades that rows of their own block or of earlier ones approve.
    async fn approved(&self) -> BTreeSet<u64> {
        let approvals = "SELECT upgrade_block_height, network_release_tag, status::text, height
            FROM protocol_upgrade_proposals JOIN blocks USING (block_time) ORDER BY block_time";
        let approvals = self.database.connect().await.query(approvals, &[]).await.unwrap();
        let mut approved = BTreeSet::new();
        for row in approvals {
            let (height, tag, status): (i64, String, String) = (row.get(0), row.get(1), row.get(2));
            if row.get::<_, i64>(3) <= height {
                match status.strip_prefix("PROTOCOL_UPGRADE_PROPOSAL_STATUS_").unwrap() {
                    "APPROVED" => approved.insert((height, tag)),
                    _ => approved.remove(&(height, tag)),
                };
            }
        }
        approved.into_iter().map(|(height, _)| height.cast_unsigned()).collect()
    }

    /// A database that holds all blocks up to a height.
    async fn database_up_to(&self, height: u64) -> Database {
        let (from, part) = (self.database.connect().await, Database::fresh().await);
        let mut to = part.connect().await;
        let chain = copied(&from, "SELECT * FROM chain").await;
        let transaction = to.transaction().await.unwrap();
        insert(&transaction, "chain", chain).await;
        transaction.commit().await.unwrap();
        self.write_blocks(&mut to, &format!("height <= {height}")).await;
        part
    }

    /// Writes all rows of the blocks that a SQL condition selects, in one transaction (W1).
    async fn write_blocks(&self, to: &mut Client, which: &str) {
        let from = self.database.connect().await;
        let transaction = to.transaction().await.unwrap();
        for table in tables(&from).await {
            let chosen = format!("block_time IN (SELECT block_time FROM blocks WHERE {which})");
            let rows = copied(&from, &format!("SELECT * FROM {table} WHERE {chosen}")).await;
            insert(&transaction, &table, rows).await;
        }
        transaction.commit().await.unwrap();
    }
}

/// The history tables, `blocks` last.
async fn tables(client: &Client) -> Vec<String> {
    let sql = "SELECT table_name::text FROM information_schema.columns JOIN information_schema.tables
            USING (table_schema, table_name)
        WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND column_name = 'block_time'
            AND table_name <> ALL ($1) ORDER BY table_name = 'blocks', table_name";
    let rows = client.query(sql, &[&DERIVED.as_slice()]).await.unwrap();
    let tables: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!((tables.len(), tables.last().map(String::as_str)), (22, Some("blocks")), "{tables:?}");
    tables
}

async fn copied(client: &Client, query: &str) -> Vec<Bytes> {
    client.copy_out(&format!("COPY ({query}) TO STDOUT")).await.unwrap().try_collect().await.unwrap()
}

async fn insert(transaction: &tokio_postgres::Transaction<'_>, table: &str, rows: Vec<Bytes>) {
    let sink = transaction.copy_in(&format!("COPY {table} FROM STDIN")).await.unwrap();
    let mut sink = std::pin::pin!(sink);
    for row in rows {
        sink.feed(row).await.unwrap();
    }
    sink.finish().await.unwrap();
}

async fn networks() -> Vec<Network> {
    let (demo, recorded, upgraded) =
        tokio::join!(Network::demo(), Network::recorded(), Network::recorded_with_upgrade());
    [Some(demo), recorded, upgraded].into_iter().flatten().collect()
}

fn spans_text(spans: &[(u64, u64)]) -> String {
    spans.iter().map(|(from, to)| format!("{from}-{to}")).collect::<Vec<_>>().join(" ")
}

async fn mesh(database: &Database, interval: u64) -> Mesh {
    Mesh::configure(database).env("MESH_HISTORY_INTERVAL_BLOCKS", interval.to_string()).start().await
}

async fn is_ready(mesh_client: &MeshClient) -> bool {
    let answer = mesh_client.get(STATUS).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json() == json!({ "ready": true })
}

/// Waits until operation 4.11 returns this status.
async fn until_ready(mesh_client: &MeshClient, ready: bool) {
    eventually(Duration::from_secs(60), &format!("4.11 is never {ready}"), async || {
        is_ready(mesh_client).await == ready
    })
    .await;
}

/// Waits until answers are of this block.
async fn until_height(mesh_client: &MeshClient, height: u64) {
    let expected_height = height.to_string();
    eventually(Duration::from_secs(60), &format!("no answer is of block {height}"), async || {
        mesh_client.get("/blockchain/height").await.json()["height"] == expected_height.as_str()
    })
    .await;
}

async fn newest_end(mesh_client: &MeshClient) -> Value {
    mesh_client.get(SEGMENTS).await.json()["segments"][0]["toHeight"].clone()
}

#[tokio::test]
async fn every_segment_of_both_data_sets_ends_where_the_rule_says() {
    for network in networks().await {
        for interval in [1000, 700] {
            let row = network.database.connect().await.query_one("SELECT max(height) FROM blocks", &[]).await;
            let head = row.unwrap().get::<_, i64>(0).cast_unsigned();
            let spans = network.spans(interval, head).await;
            let mesh = mesh(&network.database, interval).await;
            let mesh_client = MeshClient::new(&mesh);
            mesh_client.until_sealed(&spans).await;
            assert!(!is_ready(&mesh_client).await, "{}: its upgrade is long over", network.name);
            say(&format!("{}, every {interval} blocks: {}", network.name, spans_text(&spans)));
        }
    }
}

#[tokio::test]
async fn an_upgrade_is_ready_from_its_own_block_to_the_next() {
    for network in networks().await {
        let Some(height) = network.upgrade else { continue };
        let database = network.database_up_to(height - 1).await;
        let mut writer = database.connect().await;
        let mesh = mesh(&database, 1000).await;
        let mesh_client = MeshClient::new(&mesh);
        mesh_client.until_sealed(&network.spans(1000, height - 1).await).await;
        assert!(!is_ready(&mesh_client).await, "{}: block {height} is still to come", network.name);

        network.write_blocks(&mut writer, &format!("height = {height}")).await;
        until_ready(&mesh_client, true).await;
        assert_eq!(newest_end(&mesh_client).await, height.to_string(), "{}: sealed first", network.name);
        mesh_client.until_sealed(&network.spans(1000, height).await).await;
        assert!(is_ready(&mesh_client).await, "{}: the next block is still to come", network.name);

        network.write_blocks(&mut writer, &format!("height = {}", height + 1)).await;
        until_ready(&mesh_client, false).await;
        assert_eq!(newest_end(&mesh_client).await, height.to_string(), "{}", network.name);
        network
            .write_blocks(&mut writer, &format!("height BETWEEN {} AND {}", height + 2, height + 30))
            .await;
        until_height(&mesh_client, height + 30).await;
        assert!(!is_ready(&mesh_client).await, "{}: a release makes blocks", network.name);
        say(&format!(
            "{}: ready after block {height} with segment …-{height}, not before and not after block {}",
            network.name,
            height + 1
        ));
    }
}
