//! Special values in CSV and ZIP: a database full of them, sealed and downloaded by a mesh.

use mesh_tests::{Member, assert_read_by_programs, members, tables};

use super::*;

/// Blocks 1 to 45 in segments of 10; an upgrade at block 25 ends one early; blocks 41 to 45 are not sealed
/// yet.
const SEGMENTS: [(u64, u64); 5] = [(1, 10), (11, 20), (21, 25), (26, 30), (31, 40)];

const CHAIN: &str = "odd/ch\u{e4}in \"1\";\r\n%2e..-2";
/// The chain id as file names carry it (X5).
const CHAIN_IN_NAMES: &str = "odd_ch_in__1_____2e..-2";

/// The CSV header of orders; some rows repeat it.
const ORDERS: &str = "id,market_id,party_id,side,price,size,remaining,time_in_force,type,status,reference,reason,\
version,batch_id,pegged_offset,pegged_reference,lp_id,created_at,updated_at,expires_at,tx_hash,block_time,seq_num,\
post_only,reduce_only";

async fn database() -> Database {
    let (database, client) = Database::with_client().await;
    client.execute("INSERT INTO chain (id) VALUES ($1)", &[&CHAIN]).await.unwrap();
    let rows = include_str!("traps.sql").replace("{columns}", ORDERS);
    client.batch_execute(&rows).await.unwrap_or_else(|error| panic!("{:?}", error.as_db_error()));
    database
}

#[tokio::test]
async fn special_values_are_downloaded_as_postgresql_prints_them() {
    let folder = tempfile::tempdir().unwrap();
    let database = database().await;
    let setup = Mesh::configure(&database).env("MESH_HISTORY_URL", folder.path().to_str().unwrap());
    let setup = setup.env("MESH_HISTORY_INTERVAL_BLOCKS", "10").env("MESH_HISTORY_REFRESH_MS", "20");
    let mesh = setup.start().await;
    let mesh_client = MeshClient::new(&mesh);
    mesh_client.until_sealed(&SEGMENTS).await;
    let (copier, version) = (Copier::open(&database).await, database.schema_version().await);
    let mut downloads = Vec::new();
    for (name, table) in tables() {
        let header = copier.spans(&table, &[]).await;
        for (first, last) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (1, 3), (0, 4)] {
            let (from, to) = (SEGMENTS[first].0, SEGMENTS[last].1);
            let path = format!("/api/v2/networkhistory/export?fromBlock={from}&toBlock={to}&table={name}");
            let answer = mesh_client.get(&path).await;
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            let members = members(&answer.body).await;
            let expected = copier.spans(&table, &SEGMENTS[first..=last]).await;
            let [(member, text)] = &members[..] else { panic!("{path}: {} members", members.len()) };
            assert_eq!(*member, format!("{CHAIN_IN_NAMES}-{table}-{version}-{from}-{to}.csv"));
            assert!(*text == expected, "{path}: {} bytes, not {}", text.len(), expected.len());
            let file = format!("attachment; filename=\"{CHAIN_IN_NAMES}-{table}-{from}-{to}.zip\"");
            assert_eq!(answer.header("content-disposition"), Some(&*file));
            let rows = csv::Reader::from_reader(&expected[..]).byte_records().count();
            assert_eq!(answer.header("x-total-rows"), Some(&*rows.to_string()), "{path}");
            // The data has the intended shape: rows of orders by segment.
            if table == "orders" && first == last {
                assert_eq!(rows, [17, 0, 5, 300, 2][first]);
                assert!(first != 1 || text.len() == header.len() && header.len() == ORDERS.len() + 1);
                assert!(first != 2 || text.len() > 18 << 20, "{}", text.len());
            }
            downloads.push((answer.body, members));
        }
    }
    let zips: Vec<(&[u8], &[Member])> =
        downloads.iter().map(|(zip, members)| (&zip[..], &members[..])).collect();
    assert_read_by_programs("traps", &zips);
}
