//! Suite "reads": single rows, cached rows, pages.

use std::time::Duration;

use mesh::failure::Failure;
use tokio::sync::OnceCell;

use super::{
    Section, baseline, deep_pages, heads, hot, page, point,
    sections::{ReadsSection, SectionName},
    store, telemetry_overhead, withdrawals,
};
use crate::{
    bench::args::BenchArgs,
    private::{Edges, Layout, PrivateMesh, Servers},
};

/// Runs the sections, and prints each as soon as it is finished.
pub(super) async fn measure(
    mesh: &PrivateMesh,
    names: &[ReadsSection],
    args: &BenchArgs,
) -> Result<Vec<Section>, Failure> {
    let fixture = match names {
        // This section needs no server.
        [ReadsSection::Page] => None,
        _ => Some(Fixture::start(mesh, args).await?),
    };
    let mut sections = Vec::new();
    for name in names {
        let measured = match &fixture {
            None => page::measure().await,
            Some(fixture) => fixture.measure(*name).await,
        };
        let section = measured.unwrap_or_else(|failure| Section::failed(SectionName::Reads(*name), failure));
        println!("{}", section.table);
        sections.push(section);
    }
    Ok(sections)
}

/// The running mesh with filled tables.
struct Fixture<'a> {
    mesh: &'a PrivateMesh,
    args: &'a BenchArgs,
    servers: Servers,
    edges: Edges,
    sides: OnceCell<point::Sides>,
}

impl<'a> Fixture<'a> {
    async fn start(mesh: &'a PrivateMesh, args: &'a BenchArgs) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        withdrawals::fill(&servers).await?;
        let layout = Layout { env: vec![baseline::points()], ..Layout::default() };
        let edges = mesh.start_services(&servers, &layout).await?;
        Ok(Self { mesh, args, servers, edges, sides: OnceCell::new() })
    }

    async fn measure(&self, name: ReadsSection) -> Result<Section, Failure> {
        let (mesh, servers, edges) = (self.mesh, &self.servers, &self.edges);
        let length = Duration::from_secs(self.args.seconds.into());
        match name {
            ReadsSection::Point => self.sides().await?.point(mesh, length).await,
            ReadsSection::Hop => self.sides().await?.hop(mesh, length / 2).await,
            ReadsSection::Hot => hot::measure(mesh, servers, edges.cached, length).await,
            ReadsSection::Store => store::measure(mesh, servers, length).await,
            ReadsSection::Page => page::measure().await,
            ReadsSection::Depth => deep_pages::measure(servers, edges.uncached, self.args.runs).await,
            ReadsSection::Heads => heads::measure(mesh, servers, edges.cached).await,
            ReadsSection::Telling => telemetry_overhead::measure(mesh, servers, edges.uncached, length).await,
        }
    }

    /// The sides of the sections "point" and "hop", started on first use.
    async fn sides(&self) -> Result<&point::Sides, Failure> {
        let start = || point::Sides::start(self.mesh, &self.servers, self.edges.uncached);
        self.sides.get_or_try_init(start).await
    }
}
