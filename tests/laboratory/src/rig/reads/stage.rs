//! Where a drill is played: a private mesh with two replicas of what is drilled, rows to read, a block every
//! second, and the load that never stops.

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
        questions::{Questions, start_filled},
        report::in_ms,
    },
};

/// Replicas of the services that are drilled.
const REPLICAS: [(&str, u32); 2] = [("query", 2), ("node-info", 2)];
/// How long service may take to become normal between two phases.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is normal: no failure in this long, and times below the next figure.
const NORMAL_FOR: Duration = Duration::from_secs(1);
const NORMAL_P99: Duration = Duration::from_millis(250);

/// Everything that a phase needs.
pub(super) struct Stage<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) servers: Servers,
    pub(super) edges: Edges,
    pub(super) load: Load,
    /// What is asked again and again, and kept by the edge.
    pub(super) hot: Vec<Arc<str>>,
    /// Whether it is the short form.
    pub(super) is_short: bool,
    /// Requests a second.
    pub(super) rate: u32,
    /// Times that each bar of time is stretched.
    slack: u32,
}

impl<'a> Stage<'a> {
    /// Starts everything, and the load.
    pub(super) async fn set(mesh: &'a PrivateMesh, args: &ReadsArgs, seed: u64) -> Result<Self, Failure> {
        let (servers, database) = start_filled(mesh).await?;
        let edges =
            mesh.start_services(&servers, &Layout { replicas: &REPLICAS, ..Layout::default() }).await?;
        let questions = Questions::find(&database).await?;
        let hot = questions.hot().into_iter().map(|question| question.path).collect();
        let mix = questions.mix(edges.cached, edges.uncached);
        let load = Load::start(mix, args.rate, seed)?;
        let (is_short, slack) = (args.play.run.short, args.play.slack);
        Ok(Self { mesh, servers, edges, load, hot, is_short, rate: args.rate, slack })
    }

    /// A bar of time, stretched as asked.
    pub(super) fn bound(&self, time: Duration) -> Duration {
        time * self.slack
    }

    /// Lets a time pass, half of it in the short form.
    pub(super) async fn look_on(&self, time: Duration) {
        sleep(if self.is_short { time / 2 } else { time }).await;
    }

    /// Waits until all is as usual. Says whether it became so.
    pub(super) async fn becomes_normal(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let begun = self.load.now();
        while Instant::now() < deadline {
            sleep(NORMAL_FOR / 4).await;
            let Some(from) = self.load.now().checked_sub(NORMAL_FOR).filter(|from| *from >= begun) else {
                continue;
            };
            let to = self.load.now();
            self.load.settled(to).await;
            let figures = Figures::of(&self.load.samples(from, to), from, to);
            let is_normal = figures.fine == figures.requests && figures.worst_p99 < self.bound(NORMAL_P99);
            if figures.requests > 0 && is_normal {
                return true;
            }
        }
        false
    }

    /// Ends a phase that began at a moment: its samples, and a report of their figures.
    pub(super) async fn report(&self, name: &str, from: Duration) -> (Vec<Sample>, Report) {
        let to = self.load.now();
        self.load.settled(to).await;
        let samples = self.load.samples(from, to);
        let mut report = Report::of(name, Figures::of(&samples, from, to));
        for (text, (first, count)) in self.load.said(from, to) {
            report
                .said
                .push(format!("{count} times, first after {}: {text}", in_ms(first.saturating_sub(from))));
        }
        (samples, report)
    }
}
