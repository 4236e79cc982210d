//! Section "ledger": the ledger of a party as CSV through the whole mesh, compared with psql and an
//! equivalent query.

use std::net::SocketAddr;

use futures_util::StreamExt as _;
use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
    terminal::print_line,
};
use mesh_problem::error_chain;
use tokio_postgres::Client;

use super::{
    super::{
        Section,
        bar::{Bar, Bound},
        comparison::ROUNDS,
        cost::{self, MeasuredProcess},
        meter::Meter,
        transfer::{self, BYTES, Transfer, TransferRound},
    },
    Fixture,
    psql::{Printed, Psql},
    run_blocking,
    sealing::fill_by,
};

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

/// Fills in accounts and ledger entries.
pub(super) async fn fill(database: &Client, rows: u64) -> Result<(), Failure> {
    print_line(&format!("filling in {rows} ledger entries"));
    fill_by(database, FILL_ACCOUNTS, rows).await?;
    fill_by(database, FILL, rows).await?;
    for statement in ["VACUUM ANALYZE accounts, ledger", "CHECKPOINT"] {
        database.batch_execute(statement).await.map_err(|error| cannot("fill in the ledger", &error))?;
    }
    Ok(())
}

/// Runs the comparison.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let psql = Psql::find(&fixture.servers)?;
    let found = psql.clone();
    if !run_blocking(move || Ok(found.runs())).await? {
        return Ok(Section::skipped("ledger", "there is no psql"));
    }
    print_line("exporting a ledger");
    let database = fixture.servers.connect("").await?;
    let ids = "SELECT encode(sha256('party0'), 'hex'), encode(sha256('asset0'), 'hex')";
    let ids = database.query_one(ids, &[]).await.map_err(|error| cannot("name the party", &error))?;
    let (party, asset): (String, String) = (ids.get(0), ids.get(1));
    let path = format!("/api/v2/ledgerentry/export?partyId={party}&assetId={asset}");
    let edge = fixture.edges.cached;
    let mut sides = [
        Transfer::new("ledger over the mesh", BYTES, fixture.mesh.watch(&[POSTGRES, "export", NATS, "edge"])),
        Transfer::new("psql COPY", BYTES, fixture.mesh.watch(&[POSTGRES])),
    ];
    let mut printed = None;
    for _ in 0..ROUNDS {
        let (path, watched) = (path.clone(), sides[0].processes().to_vec());
        let (product, moved) = run_blocking(move || export(edge, &path, &watched)).await?;
        sides[0].add(moved);
        let (psql, watched) = (psql.clone(), sides[1].processes().to_vec());
        let (baseline, moved) = run_blocking(move || copy(&psql, &watched)).await?;
        sides[1].add(moved);
        if product != baseline {
            return Err(Failure::failed(format!(
                "the export and psql print different rows: {} and {} bytes",
                product.bytes, baseline.bytes
            )));
        }
        printed = Some(product);
    }
    let bar = Bar {
        what: format!("{} / {}, bytes a second", sides[0].name(), sides[1].name()),
        found: sides[0].rate() / sides[1].rate(),
        bound: Bound::AtLeast(0.5),
        aim: 0.8,
    };
    let megabytes = printed.map_or(0.0, |printed| printed.bytes as f64 / 1e6);
    let title = format!("ledger: {megabytes:.0} MB of CSV, half of {} entries", fixture.rows);
    let figures: Vec<_> = sides.iter().map(Transfer::figures).collect();
    Ok(Section::new("ledger", &transfer::tables(&title, &sides), &figures, &[bar]))
}

/// Downloads the CSV.
fn export(
    edge: SocketAddr,
    path: &str,
    watched: &[MeasuredProcess],
) -> Result<(Printed, TransferRound), String> {
    let said = |error: reqwest::Error| format!("{path}: {}", error_chain(&error));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        // Without compression, as psql prints plain text.
        let client = reqwest::Client::builder().no_gzip().build().map_err(said)?;
        let (meter, before_us) = (Meter::start(watched), cost::thread_cpu_us());
        let answer = client.get(format!("http://{edge}{path}")).send().await.map_err(said)?;
        let mut body = answer.error_for_status().map_err(said)?.bytes_stream();
        let (mut bytes, mut crc32) = (0, crc32fast::Hasher::new());
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(said)?;
            bytes += piece.len() as u64;
            crc32.update(&piece);
        }
        let load_us = cost::thread_cpu_us() - before_us;
        let moved =
            TransferRound { amount: bytes, spent: meter.stop(load_us), own_us: vec![("load", load_us)] };
        Ok((Printed { bytes, crc32: crc32.finalize() }, moved))
    })
}

/// Runs psql.
fn copy(psql: &Psql, watched: &[MeasuredProcess]) -> Result<(Printed, TransferRound), String> {
    let ended = || cost::ended_children_cpu_us().unwrap_or(0);
    let (meter, before_us, own_us) = (Meter::start(watched), ended(), cost::thread_cpu_us());
    let printed = psql.print(&[COPY])?;
    let (psql_us, own_us) = (ended() - before_us, cost::thread_cpu_us() - own_us);
    let own = vec![("psql", psql_us), ("reader", own_us)];
    Ok((printed, TransferRound { amount: printed.bytes, spent: meter.stop(psql_us + own_us), own_us: own }))
}
