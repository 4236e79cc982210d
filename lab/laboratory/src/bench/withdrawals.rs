//! The rows for reads of single rows.

use std::sync::Arc;

use mesh::{
    failure::{Failure, cannot},
    terminal::print_line,
};

use crate::empty_blocks::NEXT_BLOCK;
use crate::private::Servers;

/// The statement that reads one.
pub(super) const STATEMENT: &str = include_str!("../../../../services/query/sql/get_withdrawal.sql");
/// Number of rows of each kind: with hash ids, and with numeric ids.
pub(super) const ROWS: u64 = 100_000;
/// The first numeric id. pgbench can generate random numbers only, not hashes.
pub(super) const FIRST_NUMBER: i64 = 1_000_000_000_000_000_000;

/// Withdrawals with hash ids, as the network has them, stored in an order unrelated to that of the index, and
/// as many with numeric ids.
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

/// Fills the table and writes the first block.
pub(super) async fn fill(servers: &Servers) -> Result<(), Failure> {
    print_line("filling in 200,000 withdrawals");
    let statements = [FILL, NEXT_BLOCK, "VACUUM ANALYZE withdrawals", "CHECKPOINT"];
    servers.execute("fill in withdrawals", &statements).await
}

/// Paths of the first `count` withdrawals with hash ids.
pub(super) async fn paths(servers: &Servers, count: u64) -> Result<Arc<[String]>, Failure> {
    let database = servers.connect("").await?;
    let statement = "SELECT id FROM withdrawals WHERE length(id) = 64 ORDER BY block_time LIMIT $1";
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let rows = database.query(statement, &[&count]).await;
    let rows = rows.map_err(|error| cannot("read the withdrawals", &error))?;
    Ok(rows.iter().map(|row| format!("/api/v2/withdrawal/{}", row.get::<_, &str>(0))).collect())
}
