//! What the tests of all kinds of buses share: a database, a check of all operations, and a download.

use mesh_testbed::{Database, Mesh};
use mesh_tests::{MeshClient, cases, fixture};

/// Rows of the ledger: one megabyte as CSV, so that a download needs several pulls.
const ENTRIES: u32 = 10_000;

const LEDGER: &str = include_str!("ledger.sql");

pub(crate) const DOWNLOAD: &str = "/api/v2/ledgerentry/export?partyId=network&assetId=BUS";

/// A database with the fixture and a ledger of [`ENTRIES`] rows.
pub(crate) async fn database() -> Database {
    let database = fixture::database().await;
    let ledger = LEDGER.replace("{entries}", &ENTRIES.to_string());
    let inserted = database.connect().await.batch_execute(&ledger).await;
    inserted.unwrap_or_else(|error| panic!("no ledger: {:?}", error.as_db_error()));
    database
}

/// Asserts that every operation with a full answer, exports included, answers with 200.
pub(crate) async fn answers_everything(mesh: &Mesh) {
    let mesh_client = MeshClient::new(mesh);
    for (operation, path) in cases::answered() {
        // On a bus of several servers the announcement of a new replica may take a moment to arrive.
        mesh_client.await_status(&path, 200).await;
        assert_eq!(mesh_client.get(&path).await.status, 200, "{operation}");
    }
}

/// Downloads the ledger; asserts that it has all rows.
pub(crate) async fn download(mesh_client: &MeshClient) -> Vec<u8> {
    let answer = mesh_client.get(DOWNLOAD).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let file = answer.body.to_vec();
    let lines = file.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines, ENTRIES as usize + 1, "rows and the header");
    file
}
