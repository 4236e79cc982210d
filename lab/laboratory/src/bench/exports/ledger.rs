//! Section "ledger": the ledger of a party as CSV through the whole mesh, compared with psql and an
//! equivalent query.

use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
};

use super::{
    super::{
        comparison::{self, BYTES, Side, run_blocking},
        cost,
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

/// Runs the comparison. Before it, psql prints the rows that both sides must give in every round.
pub(crate) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let psql = PostgresClient::find(&world.servers, "psql")?;
    world.history().await?;
    let edge = world.edges().await?.cached;
    fill(world, "ledger entries", FILL).await?;
    let database = world.servers.connect("").await?;
    let ids = "SELECT encode(sha256('party0'), 'hex'), encode(sha256('asset0'), 'hex')";
    let ids = database.query_one(ids, &[]).await.map_err(|error| cannot("name the party", &error))?;
    let (party, asset): (String, String) = (ids.get(0), ids.get(1));
    let path = format!("/api/v2/ledgerentry/export?partyId={party}&assetId={asset}");
    let printing = psql.clone();
    let expected = run_blocking(move || printing.print(COPY)).await?;
    let check = move |printed: Printed| match printed == expected {
        true => Ok(printed.bytes),
        false => Err(format!("{printed:?} is not what psql has printed first, {expected:?}")),
    };
    let chain = world.mesh.watch(&[POSTGRES, "export", NATS, "edge"]);
    let server = world.mesh.watch(&[POSTGRES]);
    let export = move || {
        // Uncompressed, as psql prints it.
        Round::of((LOAD, cost::thread_us), &chain, || {
            let (mut bytes, mut crc32) = (0, crc32fast::Hasher::new());
            drain::download(edge, &path, |piece| {
                bytes += piece.len() as u64;
                crc32.update(piece);
                true
            })?;
            check(Printed { bytes, crc32: crc32.finalize() })
        })
    };
    let copy = move || Round::of(("psql", cost::children_us), &server, || check(psql.print(COPY)?));
    let sides = comparison::run_rounds([
        Side::blocking("ledger over the mesh", BYTES, export),
        Side::blocking("psql COPY", BYTES, copy),
    ])
    .await?;
    let megabytes = expected.bytes as f64 / 1e6;
    let title = format!("{megabytes:.0} MB of CSV, half of {} entries", world.args.rows);
    let found = vec![sides[0].rate() / sides[1].rate()];
    Ok(comparison::figures(&title, &sides, found))
}
