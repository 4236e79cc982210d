//! Section "idle": processor time and memory of an idle mesh without blocks.

use std::time::Duration;

use mesh::{failure::Failure, processes::NATS, terminal::print_line};
use mesh_launcher::{
    control::{Answer, Request},
    services::SERVICES,
};
use tokio::time::sleep;

use super::{
    cost::{self, MeasuredProcess},
    meter::Meter,
    section::{Line, Section},
    sections::SectionName,
};
use crate::private::{Layout, PrivateMesh, Servers, UNCACHED_EDGE};

/// How long a mesh must be unused before it counts as idle.
pub(super) const SETTLED: Duration = Duration::from_secs(15);
const LENGTH: Duration = Duration::from_secs(30);

/// The servers of the suite.
pub(super) struct Fixture<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) servers: Servers,
}

impl<'a> Fixture<'a> {
    pub(super) async fn start(mesh: &'a PrivateMesh) -> Result<Self, Failure> {
        Ok(Self { mesh, servers: mesh.start_servers().await? })
    }
}

/// Starts one replica of each service with a node that makes no blocks, and measures them after a while.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let Fixture { mesh, servers } = fixture;
    let node = mesh.start_node(servers, false, &[("MESH_DEVNODE_BLOCK_MS", "86400000")]).await?;
    let node_url = Some(format!("http://{}", node.address()));
    mesh.start_services(servers, &Layout { node_url, ..Layout::default() }).await?;
    let stop = Request::Stop { name: UNCACHED_EDGE.to_owned(), replica: None };
    if let Answer::Refused { reason } = mesh.supervisor.answer(stop).await {
        return Err(Failure::failed(reason));
    }
    print_line("an idle mesh");
    sleep(SETTLED).await;
    let names: Vec<&str> = SERVICES.iter().map(|service| service.name).chain([NATS]).collect();
    let watched = mesh.watch(&names);
    let meter = Meter::start(&watched);
    sleep(LENGTH).await;
    let spent = meter.stop(0);
    let cpu_ms = |us: u64| us as f64 / 1e3 / spent.seconds;
    let cpu = spent.cpu_us.clone().unwrap_or_default();
    let memory: Vec<f64> = watched.iter().map(resident_mib).collect();
    let lines: Vec<Line> =
        watched
            .iter()
            .zip(cpu.iter().zip(&memory))
            .map(|(process, (us, mib))| {
                Line::new("process", &process.name)
                    .value(("CPU ms/s", "cpuMsPerSecond"), 2, cpu_ms(*us))
                    .value(("MiB", "residentMiB"), 1, *mib)
            })
            .collect();
    let found = [
        ("all services and the bus, CPU ms a second".to_owned(), cpu_ms(cpu.iter().sum())),
        ("all services and the bus, resident MiB".to_owned(), memory.iter().sum()),
    ];
    Ok(Section::new(SectionName::Idle, "idle: a mesh without requests", &lines, "", &found))
}

pub(super) fn resident_mib(process: &MeasuredProcess) -> f64 {
    cost::memory_kib(process.pid).map_or(f64::NAN, |kib| kib as f64 / 1024.0)
}
