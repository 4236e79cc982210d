//! Sections "point" and "hop": single rows through the mesh and by the same handler without the bus.
//!
//! "point" uses many connections, so that the processors limit the rate; "hop" uses one, so that latency
//! does. The edge has no cache, since the reads of the store are measured.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
    terminal::print_line,
};
use serde_json::json;

use super::{
    Section,
    bar::{Bar, Bound},
    comparison::{self, Outcome, Side},
    load::{Load, Requests},
    withdrawals,
};
use crate::{
    bench::args::Baseline,
    private::{PrivateMesh, Servers, UNCACHED_EDGE},
};

const CONNECTIONS: u64 = 32;

/// The compared servers, started once for both sections.
pub(super) struct Sides {
    names: Vec<(&'static str, SocketAddr, Vec<&'static str>)>,
    paths: Arc<[String]>,
}

impl Sides {
    /// Starts the baselines and checks that all sides give the same answer.
    pub(super) async fn start(
        mesh: &PrivateMesh,
        servers: &Servers,
        edge: SocketAddr,
    ) -> Result<Self, Failure> {
        let paths = withdrawals::paths(servers, withdrawals::ROWS).await?;
        let one = mesh.start_baseline(servers, Baseline::Direct, "direct", &paths[0]).await?;
        let more = mesh.start_baseline(servers, Baseline::DirectThreads, "direct-threads", &paths[0]).await?;
        same_answers(&paths[0], &[edge, one, more]).await?;
        let names = vec![
            ("mesh", edge, vec![UNCACHED_EDGE, NATS, "query", POSTGRES]),
            ("direct, 1 thread", one, vec!["direct", POSTGRES]),
            ("direct, 2+1 threads", more, vec!["direct-threads", POSTGRES]),
        ];
        Ok(Self { names, paths })
    }

    async fn compare(
        &self,
        mesh: &PrivateMesh,
        connections: u64,
        length: Duration,
    ) -> Result<Vec<Outcome>, Failure> {
        let sides = self.names.iter().map(|(name, address, processes)| Side {
            name,
            load: Load {
                address: *address,
                requests: Requests::Paths(self.paths.clone()),
                connections,
                length,
                period: None,
            },
            processes: mesh.watch(processes),
        });
        comparison::run_rounds(sides.collect()).await
    }

    /// Section "point".
    pub(super) async fn point(&self, mesh: &PrivateMesh, length: Duration) -> Result<Section, Failure> {
        print_line("reading single rows, with the bus and without");
        let outcomes = self.compare(mesh, CONNECTIONS, length).await?;
        let [product, baselines @ ..] = &outcomes[..] else { return Err(nothing()) };
        let best = baselines.iter().max_by(|a, b| a.rate().total_cmp(&b.rate())).ok_or_else(nothing)?;
        let bar = Bar {
            what: format!("{} / {}, requests a second", product.name(), best.name()),
            found: product.rate() / best.rate(),
            bound: Bound::AtLeast(0.5),
            aim: 0.65,
        };
        let title = format!("point: {} withdrawals by id, {CONNECTIONS} connections", withdrawals::ROWS);
        Ok(section("point", &title, &outcomes, &bar))
    }

    /// Section "hop".
    pub(super) async fn hop(&self, mesh: &PrivateMesh, length: Duration) -> Result<Section, Failure> {
        print_line("reading single rows one after the other");
        let outcomes = self.compare(mesh, 1, length).await?;
        let [product, baselines @ ..] = &outcomes[..] else { return Err(nothing()) };
        let best = baselines.iter().min_by(|a, b| a.p50_ms().total_cmp(&b.p50_ms())).ok_or_else(nothing)?;
        let bar = Bar {
            what: format!("{} - {}, ms of the median request", product.name(), best.name()),
            found: product.p50_ms() - best.p50_ms(),
            bound: Bound::AtMost(0.3),
            aim: 0.15,
        };
        Ok(section("hop", "hop: the same over 1 connection", &outcomes, &bar))
    }
}

/// Checks that all sides give the same answer.
async fn same_answers(path: &str, sides: &[SocketAddr]) -> Result<(), Failure> {
    let mut answers = Vec::new();
    for side in sides {
        let answered =
            async { reqwest::get(format!("http://{side}{path}")).await?.error_for_status()?.text().await };
        answers.push(answered.await.map_err(|error| cannot("read a withdrawal", &error))?);
    }
    match answers.iter().all(|answer| answer == &answers[0]) {
        true => Ok(()),
        false => Err(Failure::failed(format!("the sides answer differently: {}", answers.join(" ")))),
    }
}

fn nothing() -> Failure {
    Failure::failed("there is nothing to compare")
}

/// Creates a section from results and one bar.
pub(super) fn section(name: &str, title: &str, outcomes: &[Outcome], bar: &Bar) -> Section {
    let title = format!("{title}, medians of {} rounds in turns", comparison::ROUNDS);
    let sides: Vec<_> = outcomes.iter().map(Outcome::figures).collect();
    Section {
        table: format!("{}{}", comparison::tables(&title, outcomes), bar.line()),
        figures: json!({ "section": name, "sides": sides, "bar": bar.figures() }),
        verdict: bar.verdict(),
    }
}
