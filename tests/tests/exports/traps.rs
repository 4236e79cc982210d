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

/// Inserts rows of orders: height, and id and reference as SQL.
fn orders(heights: (u64, u64), values: &str) -> String {
    let (from, to) = heights;
    format!(
        "INSERT INTO orders (id, market_id, party_id, side, price, size, remaining, time_in_force, type, status,
            reference, version, batch_id, created_at, tx_hash, block_time, seq_num)
        SELECT id, '', 'p', 1, -5, 1, 1, 1, 1, 1, reference, 1, 1, '1999-12-31 23:59:59.5+14', 'ab',
            (SELECT block_time FROM blocks WHERE height = {from} + place % ({to} - {from} + 1)), place
        FROM ({values}) AS traps (place, id, reference)"
    )
}

async fn database() -> Database {
    let (database, client) = Database::with_client().await;
    client.execute("INSERT INTO chain (id) VALUES ($1)", &[&CHAIN]).await.unwrap();
    let noise = |rows| format!("(SELECT string_agg(md5(n::text), '') FROM generate_series(1, {rows}) AS n)");
    let noise_of = [3_200, 60_000].map(noise);
    let statements = [
        "INSERT INTO blocks (height, block_time, hash)
            SELECT height, timestamptz '2024-01-01 00:00:00.5+00' + height * interval '1 s', 'ab'
            FROM generate_series(1, 45) AS height"
            .to_owned(),
        "INSERT INTO protocol_upgrade_proposals VALUES (25, 'v2', '{}', 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED',
            'ab', (SELECT block_time FROM blocks WHERE height = 24))"
            .to_owned(),
        // Everything that has a meaning in CSV or in COPY's text format, and similar harmless text.
        orders(
            (1, 10),
            "VALUES (1, 'a', NULL), (2, 'b', ''), (3, 'c', 'NULL'), (4, 'd', E'\\\\N'), (5, 'e', E'a\\r\\nb'),
                (6, 'f', '\"'), (7, 'g', ',\",\"\"'), (8, 'h', E'\\\\.'), (9, 'i', E'\\n'), (10, 'j', E'\\r'),
                (11, 'k', 'é 文 \u{1f600} \u{feff}'), (12, 'l', ' '), (13, 'm', '\"\"'), (14, 'n', E'x\\n'),
                (15, E'o\\n,', E'\\t\\x01'), (16, '', E'\\\\'), (17, 'é', E'\\n\\n\"\\r\\n\"')",
        ),
        // No rows in 11-20. Long rows in 21-25: with line breaks, and with random text that deflate cannot
        // shorten.
        orders((21, 25), &format!("VALUES (1, 'a', repeat('x,', 40000)), (2, 'b', {})", noise_of[0])),
        orders(
            (21, 25),
            &format!(
                "VALUES (3, 'c', repeat(md5('a') || E'\\r\\n', 500000)), (4, 'd', {}), (5, 'e', NULL)",
                noise_of[1]
            ),
        ),
        // The first rows after the header repeat the header: many times, and in 31-40 once before random
        // text.
        orders((26, 30), &format!("SELECT n, '{ORDERS}', E'{ORDERS}\\n' FROM generate_series(1, 300) AS n")),
        orders((31, 40), &format!("VALUES (0, '{ORDERS}', {}), (1, '', '{ORDERS}')", noise_of[0])),
        "INSERT INTO checkpoints SELECT E'hash,block_hash\\n' || n, '', n, '', block_time, n
            FROM generate_series(1, 9) AS n JOIN blocks ON height = n * 4"
            .to_owned(),
        r#"INSERT INTO withdrawals SELECT id, 'p', 1.50, '', 'STATUS_OPEN', E'\\N', '', '1678-01-01', '2261-12-31 23:59:59.999999+00',
            jsonb_build_object('é"', E'a\r\n"b"', 'null', NULL), '', block_time
            FROM unnest('{é,Z,a,_,ab,"a b",A,"",文}'::text[]) WITH ORDINALITY AS ids (id, n)
            JOIN blocks ON height = 30 + (n * 7) % 10"#
            .to_owned(),
    ];
    for statement in statements {
        client.batch_execute(&statement).await.unwrap_or_else(|error| {
            panic!("{:?}: {}", error.as_db_error(), &statement[..statement.len().min(300)])
        });
    }
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
