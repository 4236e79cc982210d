//! Section "ledger": the ledger of a party as CSV through the whole mesh, compared with psql and an
//! equivalent query.

use std::net::SocketAddr;

use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
    terminal::print_line,
};

use super::{
    super::{
        comparison::{self, BYTES, Side, run_blocking},
        cost::{self, MeasuredProcess},
        meter::{LOAD, Meter, Round},
        postgres_client::PostgresClient,
        section::Section,
        sections::SectionName,
    },
    Fixture, HASH, drain, filling,
    psql::{self, Printed},
};
use crate::private::Servers;

const COPY: &str = include_str!("../../../sql/ledger_copy.sql");

/// Eleven accounts of the party, and one of each of a thousand others.
const FILL_ACCOUNTS: &str = "INSERT INTO accounts
    SELECT hash('account', n), hash('party', greatest(n - 10, 0)), hash('asset', 0),
        CASE WHEN n BETWEEN 1 AND 10 THEN hash('market', n) ELSE '' END, CASE WHEN n BETWEEN 1 AND 10 THEN 3 ELSE 4 END,
        hash('transaction', n), timestamptz '2023-01-18 00:00:00+00'
    FROM generate_series(0, 1010) AS n";

/// Half of the entries are the party's; a tenth of those are between its own accounts, the others alternate
/// between outgoing and incoming.
const FILL: &str = "INSERT INTO ledger
    SELECT time + n % $1 * interval '1 microsecond',
        hash('account', CASE WHEN n % 4 = 0 OR n % 20 = 2 THEN n / 4 % 11 ELSE 11 + n % 1000 END),
        hash('account', CASE WHEN n % 4 = 2 THEN (n / 4 + 1) % 11 ELSE 11 + (n + 7) % 1000 END),
        1 + n * 104729 % 1000000007, hash('transaction', n / 10), time, time, 1000000 + n * 31 % 1000003,
        2000000 + n * 37 % 1000003, 'TRANSFER_TYPE_MTM_LOSS'
    FROM (
        SELECT n, timestamptz '2023-01-18 00:00:00+00' + (1 + n / $1) * interval '1 second' AS time
        FROM generate_series(0, $2 - 1) AS n
    ) AS numbers";

/// Fills in accounts and ledger entries. Not at the start, since they would be sealed in section "sealing".
async fn fill(servers: &Servers, rows: u64) -> Result<(), Failure> {
    print_line(&format!("filling in {rows} ledger entries"));
    let (accounts, entries) = (filling(FILL_ACCOUNTS, rows), filling(FILL, rows));
    let statements = [HASH, &accounts, &entries, "VACUUM ANALYZE accounts, ledger", "CHECKPOINT"];
    servers.execute("fill in the ledger", &statements).await
}

/// Runs the comparison. Before it, psql prints the rows that both sides must give in every round.
pub(crate) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let Some(psql) = PostgresClient::find(&fixture.servers, "psql")? else {
        return Ok(Section::skipped(SectionName::Ledger, "there is no psql"));
    };
    fill(&fixture.servers, fixture.rows).await?;
    print_line("exporting a ledger");
    let database = fixture.servers.connect("").await?;
    let ids = "SELECT encode(sha256('party0'), 'hex'), encode(sha256('asset0'), 'hex')";
    let ids = database.query_one(ids, &[]).await.map_err(|error| cannot("name the party", &error))?;
    let (party, asset): (String, String) = (ids.get(0), ids.get(1));
    let path = format!("/api/v2/ledgerentry/export?partyId={party}&assetId={asset}");
    let (edge, printing) = (fixture.edges.cached, psql.clone());
    let expected = run_blocking(move || psql::print(&printing, COPY)).await?;
    let chain = fixture.mesh.watch(&[POSTGRES, "export", NATS, "edge"]);
    let server = fixture.mesh.watch(&[POSTGRES]);
    let sides = comparison::run_rounds([
        Side::blocking("ledger over the mesh", BYTES, move || export(edge, &path, expected, &chain)),
        Side::blocking("psql COPY", BYTES, move || copy(&psql, expected, &server)),
    ])
    .await?;
    let megabytes = expected.bytes as f64 / 1e6;
    let title = format!("{megabytes:.0} MB of CSV, half of {} entries", fixture.rows);
    let found = sides[0].rate_to(&sides[1], "bytes");
    Ok(comparison::section(SectionName::Ledger, &title, &sides, &[found]))
}

/// Downloads the CSV, uncompressed as psql prints it.
fn export(
    edge: SocketAddr,
    path: &str,
    expected: Printed,
    watched: &[MeasuredProcess],
) -> Result<Round, String> {
    let (meter, before_us) = (Meter::start(watched), cost::thread_cpu_us());
    let (mut bytes, mut crc32) = (0, crc32fast::Hasher::new());
    drain::download(edge, path, |piece| {
        bytes += piece.len() as u64;
        crc32.update(piece);
        true
    })?;
    let load_us = cost::thread_cpu_us() - before_us;
    let (spent, exported) = (meter.stop(load_us), Printed { bytes, crc32: crc32.finalize() });
    if exported != expected {
        return Err(format!(
            "the export and psql print different rows: {bytes} and {} bytes",
            expected.bytes
        ));
    }
    Ok(Round { amount: bytes, spent, own_us: vec![(LOAD, load_us)], ..Round::default() })
}

/// Runs psql.
fn copy(psql: &PostgresClient, expected: Printed, watched: &[MeasuredProcess]) -> Result<Round, String> {
    let ended = || cost::ended_children_cpu_us().unwrap_or(0);
    let (meter, before_us, own_us) = (Meter::start(watched), ended(), cost::thread_cpu_us());
    let printed = psql::print(psql, COPY)?;
    let (psql_us, own_us) = (ended() - before_us, cost::thread_cpu_us() - own_us);
    let spent = meter.stop(psql_us + own_us);
    if printed != expected {
        return Err("psql prints other rows than before".to_owned());
    }
    let own_us = vec![("psql", psql_us), ("reader", own_us)];
    Ok(Round { amount: printed.bytes, spent, own_us, ..Round::default() })
}
