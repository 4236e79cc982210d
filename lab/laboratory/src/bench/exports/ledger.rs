//! Section "ledger": ledgers of parties of several shapes as CSV through the whole mesh, compared with psql and
//! an equivalent query.

use std::{net::SocketAddr, thread};

use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
};

use super::{
    super::{
        comparison::{self, BYTES, Side, run_blocking},
        cost::{self, MeasuredProcess},
        meter::{LOAD, Round},
        postgres_client::{PostgresClient, Printed},
        section::Figures,
        world::World,
    },
    drain, fill,
};
const COPY: &str = include_str!("../../../sql/ledger_copy.sql");

/// Accounts and ledger entries. Not filled in before section "sealing", which would seal them.
const FILL: &str = include_str!("../../../sql/ledger.sql");

/// Whose ledger from when on (seconds since 1970), and how many downloads at a time.
const SHAPES: [(&str, u8, i64, usize); 6] = [
    ("half of all entries", 0, 0, 1),
    ("4 of these", 0, 0, 4),
    ("8 of these", 0, 0, 8),
    ("the second half of these", 0, 1_674_000_500, 1),
    ("41 accounts, 2 % of all", 1, 0, 1),
    ("1 account, 6 % of all", 2, 0, 1),
];

/// A ledger and who downloads it.
#[derive(Clone)]
struct Shape {
    statement: String,
    path: String,
    downloads: usize,
    /// What psql has printed first.
    expected: Printed,
}

/// Runs the comparisons. Before each, psql prints the rows that both sides must give in every round.
pub(crate) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let psql = PostgresClient::find(&world.servers, "psql")?;
    world.history().await?;
    let edge = world.edges().await?.cached;
    fill(world, "ledger entries", FILL).await?;
    let chain = world.mesh.watch(&[POSTGRES, "export", NATS, "edge"]);
    let server = world.mesh.watch(&[POSTGRES]);
    let (mut sides, mut slowest, mut dearest) = (Vec::new(), f64::INFINITY, f64::NEG_INFINITY);
    for (name, party, start, downloads) in SHAPES {
        let shape = Shape::new(world, &psql, (party, start), downloads).await?;
        let (of_mesh, of_psql, psql) = (shape.clone(), shape, psql.clone());
        let (chain, server) = (chain.clone(), server.clone());
        let [mesh, copy] = comparison::run_rounds([
            Side::blocking(name, BYTES, move || of_mesh.download(edge, &chain)),
            Side::blocking(format!("{name}: psql COPY"), BYTES, move || of_psql.copy(&psql, &server)),
        ])
        .await?;
        slowest = slowest.min(mesh.rate() / copy.rate());
        // One second for a gigabyte is one millisecond for a megabyte.
        dearest = dearest.max(mesh.cost_without(LOAD) - copy.cost());
        sides.extend([mesh, copy]);
    }
    let title = format!("ledgers among {} entries", world.args.rows);
    Ok(comparison::figures(&title, &sides, vec![slowest, dearest]))
}

impl Shape {
    async fn new(
        world: &World<'_>,
        psql: &PostgresClient,
        (party, start): (u8, i64),
        downloads: usize,
    ) -> Result<Self, Failure> {
        let database = world.servers.connect().await?;
        let ids = format!(
            "SELECT encode(sha256('party{party}'), 'hex'), encode(sha256('asset0'), 'hex'), to_timestamp({start})::text"
        );
        let ids = database.query_one(&ids, &[]).await.map_err(|error| cannot("name the party", &error))?;
        let (id, asset, from): (String, String, String) = (ids.get(0), ids.get(1), ids.get(2));
        let range = format!("dateRange.startTimestamp={}", start * 1_000_000_000);
        let path = format!("/api/v2/ledgerentry/export?partyId={id}&assetId={asset}&{range}");
        let statement = COPY.replace(":party", &party.to_string()).replace(":start", &from);
        let (psql, printing) = (psql.clone(), statement.clone());
        let expected = run_blocking(move || psql.print(&printing)).await?;
        Ok(Self { statement, path, downloads, expected })
    }

    fn check(&self, printed: Printed) -> Result<u64, String> {
        match printed == self.expected {
            true => Ok(printed.bytes),
            false => Err(format!("{printed:?} is not what psql has printed first, {:?}", self.expected)),
        }
    }

    /// Downloads it, uncompressed, as psql prints it.
    fn download(&self, edge: SocketAddr, watched: &[MeasuredProcess]) -> Result<Round, String> {
        self.run((LOAD, cost::process_us), watched, || {
            let (mut bytes, mut crc32) = (0, crc32fast::Hasher::new());
            drain::download(edge, &self.path, |piece| {
                bytes += piece.len() as u64;
                crc32.update(piece);
                true
            })?;
            Ok(Printed { bytes, crc32: crc32.finalize() })
        })
    }

    fn copy(&self, psql: &PostgresClient, watched: &[MeasuredProcess]) -> Result<Round, String> {
        self.run(("psql", cost::children_us), watched, || psql.print(&self.statement))
    }

    /// Measures a round of it, each download in a thread of its own.
    fn run(
        &self,
        clock: (&'static str, fn() -> f64),
        watched: &[MeasuredProcess],
        one: impl Fn() -> Result<Printed, String> + Sync,
    ) -> Result<Round, String> {
        Round::of(clock, watched, || {
            thread::scope(|scope| {
                let all: Vec<_> = (0..self.downloads).map(|_| scope.spawn(&one)).collect();
                let printed = all.into_iter().map(|one| one.join().map_err(|_| "a download panicked")?);
                printed.map(|printed| self.check(printed?)).sum()
            })
        })
    }
}
