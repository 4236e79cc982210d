//! The rows that single reads ask for.

use std::sync::Arc;

use mesh::{
    failure::{Failure, cannot},
    terminal::print_line,
};

use crate::private::Servers;

/// Rows of each kind.
pub(super) const ROWS: u64 = 100_000;
/// The first number that is an id of its own: pgbench can choose numbers only.
pub(super) const FIRST_NUMBER: i64 = 1_000_000_000_000_000_000;

/// Appends a block.
pub(super) const NEXT_BLOCK: &str = include_str!("../../../../tools/mesh/sql/next_block.sql");

/// As many withdrawals again as ids are named by the first part: hashes, as the network has them, in an order
/// on disk that has nothing to do with that of the index, and numbers.
const FILL: &str = "INSERT INTO withdrawals
    SELECT id, encode(sha256(('party' || n % 1000)::bytea), 'hex'), n * 1000003 + 7, repeat('a5', 32),
        'STATUS_FINALIZED', n::text, '0x' || encode(sha256(('foreign' || n)::bytea), 'hex'),
        time, time + interval '468 seconds',
        jsonb_build_object('erc20', jsonb_build_object(
            'receiverAddress', '0x' || left(encode(sha256(('address' || n)::bytea), 'hex'), 40))),
        encode(sha256(('tx' || n)::bytea), 'hex'), time
    FROM (
        SELECT n, n * interval '1 second' + timestamptz '2023-01-01 00:00:00+00' AS time,
            CASE WHEN n < 100000 THEN encode(sha256(n::text::bytea), 'hex')
                ELSE (1000000000000000000 + n - 100000)::text END AS id
        FROM generate_series(0, 199999::int8) AS n
    ) AS numbers";

/// Fills the table, and begins the chain.
pub(super) async fn fill(servers: &Servers) -> Result<(), Failure> {
    print_line("filling in 200,000 withdrawals");
    let database = servers.connect("").await?;
    for statement in [FILL, NEXT_BLOCK, "VACUUM ANALYZE withdrawals", "CHECKPOINT"] {
        database.batch_execute(statement).await.map_err(|error| cannot("fill in withdrawals", &error))?;
    }
    Ok(())
}

/// The paths of the first so many withdrawals that the network could have.
pub(super) async fn paths(servers: &Servers, count: u64) -> Result<Arc<[String]>, Failure> {
    let database = servers.connect("").await?;
    let statement = "SELECT id FROM withdrawals WHERE length(id) = 64 ORDER BY block_time LIMIT $1";
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let rows = database.query(statement, &[&count]).await;
    let rows = rows.map_err(|error| cannot("read the withdrawals", &error))?;
    Ok(rows.iter().map(|row| format!("/api/v2/withdrawal/{}", row.get::<_, &str>(0))).collect())
}
