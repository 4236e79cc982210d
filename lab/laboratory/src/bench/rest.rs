//! Suite "rest": processor time and memory of a mesh that does little.

use std::time::Duration;

use mesh::{failure::Failure, processes::NATS};
use mesh_launcher::services::SERVICES;
use tokio::time::sleep;

use super::{cost, meter::Meter, section::Figures, world::World};
use crate::{
    generated_chain::ChainArgs,
    private::{Layout, UNCACHED_EDGE, variables},
    private_chain::Ingest,
};

/// How long a mesh must be unused before it counts as idle.
const SETTLED: Duration = Duration::from_secs(15);
const IDLE_LENGTH: Duration = Duration::from_secs(30);
/// The clock of processor time has 10 ms steps: long enough for one of 0.2 ms a second.
const FOLLOWING_LENGTH: Duration = Duration::from_secs(60);
const PERIOD: Duration = Duration::from_secs(1);
/// A part of the bus for itself.
const PREFIX: (&str, &str) = ("MESH_BUS_PREFIX", "following");

/// Section "idle": one replica of each service with a node that makes no blocks.
pub(super) async fn idle(world: &World<'_>) -> Result<Figures, Failure> {
    let World { mesh, servers, .. } = world;
    let node = mesh.start_node(servers, false, &[("MESH_DEVNODE_BLOCK_MS", "86400000")]).await?;
    let node_url = Some(format!("http://{}", node.address()));
    mesh.start_services(servers, &Layout { node_url, ..Layout::default() }).await?;
    mesh.stop_all(UNCACHED_EDGE).await?;
    let names: Vec<&str> = SERVICES.iter().map(|service| service.name).chain([NATS]).collect();
    Ok(at_rest(world, "a mesh without requests", &names, IDLE_LENGTH).await)
}

/// Section "following": `ingest` while a block a second without rows comes, which a `node-info` announces.
pub(super) async fn following(world: &World<'_>) -> Result<Figures, Failure> {
    let World { mesh, servers, .. } = world;
    let (_port, args) = ChainArgs::now(0, 1, PERIOD)?;
    mesh.start_chain("chain-following", &args).await?;
    let database = servers.another_database("following").await?;
    let env = variables(&[PREFIX]);
    let layout = Layout { node_url: Some(args.url()), env, ..Layout::default() };
    let mut environment = mesh.service_environment(servers, &layout)?;
    environment.database = database.clone();
    let (announcer, ingest) = ("node-info-following", "ingest-following");
    mesh.add(mesh.service_named(environment, "node-info", announcer)?.0, 1)?;
    let following = Ingest { name: ingest, database: &database, chain: &args, env: &[PREFIX] };
    mesh.start_ingest(servers, &following, 1)?;
    mesh.ready(&[announcer, ingest]).await?;
    Ok(at_rest(world, "ingest at a block a second without rows", &[ingest], FOLLOWING_LENGTH).await)
}

/// Measures processes after a while.
async fn at_rest(world: &World<'_>, title: &str, names: &[&str], length: Duration) -> Figures {
    sleep(SETTLED).await;
    let meter = Meter::start(&world.mesh.watch(names));
    sleep(length).await;
    let spent = meter.stop(0.0);
    let mib = |pid| cost::memory_kib(pid).map_or(f64::NAN, |kib| kib as f64 / 1024.0);
    let memory: Vec<f64> = spent.processes.iter().map(|(process, _)| mib(process.pid)).collect();
    let lines = spent.lines().zip(&memory).map(|(line, mib)| line.value("MiB", *mib));
    let found = vec![spent.ms_a_second(None), memory.iter().sum()];
    Figures { title: title.to_owned(), lines: lines.collect(), found, ..Figures::default() }
}
