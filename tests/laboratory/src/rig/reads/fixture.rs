//! Environment of the drill: a private mesh with two replicas of the services under test, filled tables, a
//! block every second, and a continuous load.

use std::{sync::Arc, time::Duration};

use mesh::failure::Failure;
use tokio::time::{Instant, sleep};

use super::Report;
use crate::{
    private::{Edges, Layout, PrivateMesh, Servers},
    rig::{
        args::ReadsArgs,
        clients::{
            load::Load,
            samples::{Figures, Sample},
        },
        read_requests::{ReadRequests, start_filled},
        report::in_ms,
    },
};

/// Replicas of the services under test.
const REPLICAS: [(&str, u32); 2] = [("query", 2), ("node-info", 2)];
/// How long the service may take to become normal between two phases.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The service is normal when all reads of `NORMAL_FOR` succeeded with a p99 below `NORMAL_P99`.
const NORMAL_FOR: Duration = Duration::from_secs(1);
const NORMAL_P99: Duration = Duration::from_millis(250);

/// The running mesh and its load.
pub(super) struct Fixture<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) servers: Servers,
    pub(super) edges: Edges,
    pub(super) load: Load,
    /// Paths whose answers the edge caches.
    pub(super) hot: Vec<Arc<str>>,
    /// Whether it is the short form.
    pub(super) is_short: bool,
    /// Rate of the load, requests a second.
    pub(super) rate: u32,
    /// Factor of all time limits.
    slack: u32,
}

impl<'a> Fixture<'a> {
    /// Starts servers, services and the load.
    pub(super) async fn start(mesh: &'a PrivateMesh, args: &ReadsArgs, seed: u64) -> Result<Self, Failure> {
        let (servers, database) = start_filled(mesh).await?;
        let edges =
            mesh.start_services(&servers, &Layout { replicas: &REPLICAS, ..Layout::default() }).await?;
        let read_requests = ReadRequests::find(&database).await?;
        let hot = read_requests.hot().into_iter().map(|request| request.path).collect();
        let mix = read_requests.mix(edges.cached, edges.uncached);
        let load = Load::start(mix, args.rate, seed)?;
        let (is_short, slack) = (args.play.run.short, args.play.slack);
        Ok(Self { mesh, servers, edges, load, hot, is_short, rate: args.rate, slack })
    }

    /// A time limit times the slack.
    pub(super) fn bound(&self, time: Duration) -> Duration {
        time * self.slack
    }

    /// Sleeps for a time, half of it in the short form.
    pub(super) async fn sleep_scaled(&self, time: Duration) {
        sleep(if self.is_short { time / 2 } else { time }).await;
    }

    /// Waits until the service is normal; returns whether it is.
    pub(super) async fn becomes_normal(&self) -> bool {
        let deadline = Instant::now() + TIMEOUT;
        let begun = self.load.now();
        while Instant::now() < deadline {
            sleep(NORMAL_FOR / 4).await;
            let Some(from) = self.load.now().checked_sub(NORMAL_FOR).filter(|from| *from >= begun) else {
                continue;
            };
            let to = self.load.now();
            self.load.until_finished(to).await;
            let figures = Figures::of(&self.load.samples(from, to), from, to);
            let is_normal = figures.fine == figures.requests && figures.worst_p99 < self.bound(NORMAL_P99);
            if figures.requests > 0 && is_normal {
                return true;
            }
        }
        false
    }

    /// Returns the samples since `from`, and a report of their figures.
    pub(super) async fn report(&self, name: &str, from: Duration) -> (Vec<Sample>, Report) {
        let to = self.load.now();
        self.load.until_finished(to).await;
        let samples = self.load.samples(from, to);
        let mut report = Report::new(name, Figures::of(&samples, from, to));
        for (text, (first, count)) in self.load.failure_texts(from, to) {
            report
                .messages
                .push(format!("{count} times, first after {}: {text}", in_ms(first.saturating_sub(from))));
        }
        (samples, report)
    }
}
