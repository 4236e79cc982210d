//! Section "following": processor time and memory of `ingest` while a block a second without rows comes.

use std::time::Duration;

use mesh::{failure::Failure, terminal::print_line};
use tokio::time::sleep;

use super::{
    idle::{Fixture, SETTLED, resident_mib},
    ingest::chain,
    meter::Meter,
    section::{Line, Section},
    sections::SectionName,
};
use crate::{private::Layout, private_ingest::Ingest};

/// The clock of processor time has 10 ms steps: long enough for one of 0.2 ms a second.
const LENGTH: Duration = Duration::from_secs(60);
const PERIOD: Duration = Duration::from_secs(1);
/// A part of the bus for itself.
const PREFIX: (&str, &str) = ("MESH_BUS_PREFIX", "following");
const NODE_INFO: &str = "node-info";

/// Starts a chain, a `node-info` that announces its blocks, and an `ingest`, and measures the last.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let Fixture { mesh, servers } = fixture;
    let (_port, args) = chain(0, 1, PERIOD)?;
    mesh.start_chain("chain-following", &args).await?;
    let database = servers.another_database("following").await?;
    let env = vec![(PREFIX.0.to_owned(), PREFIX.1.to_owned())];
    let layout = Layout { node_url: Some(args.url()), env, ..Layout::default() };
    let mut environment = mesh.service_environment(servers, &layout)?;
    environment.database = database.clone();
    let (announcer, ingest) = ("node-info-following", "ingest-following");
    mesh.add(mesh.service_named(environment, NODE_INFO, announcer)?.0, 1)?;
    let following = Ingest { name: ingest, database: &database, chain: &args, env: &[PREFIX] };
    mesh.start_ingest(servers, &following, 1)?;
    mesh.ready(&[announcer, ingest]).await?;
    print_line("following blocks without rows");
    sleep(SETTLED).await;
    let watched = mesh.watch(&[ingest]);
    let meter = Meter::start(&watched);
    sleep(LENGTH).await;
    let spent = meter.stop(0);
    let ms = spent.cpu_us.iter().flatten().sum::<u64>() as f64 / 1e3 / spent.seconds;
    let mib = watched.iter().map(resident_mib).sum::<f64>();
    let line = Line::new("process", "ingest").value(("CPU ms/s", "cpuMsPerSecond"), 2, ms).value(
        ("MiB", "residentMiB"),
        1,
        mib,
    );
    let found = [
        ("ingest at a block a second, CPU ms a second".to_owned(), ms),
        ("ingest, resident MiB".to_owned(), mib),
    ];
    let title = "following: ingest at a block a second without rows";
    Ok(Section::new(SectionName::Following, title, &[line], "", &found))
}
