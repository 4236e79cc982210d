//! How soon the other replica writes the next block when the active one is killed or frozen and nothing else is
//! down.

use std::time::Duration;

use mesh::{failure::Failure, terminal::print_line};
use mesh_launcher::services::INGEST;
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use super::{Fixture, Report};
use crate::{
    metrics,
    private_ingest::{head, stored},
    rig::{args::PlayArgs, faults::send},
};

/// How long everything may take to work before a measurement.
const CALM_WITHIN: Duration = Duration::from_secs(60);
/// Blocks by whose writer the active replica is known.
const BLOCKS: u64 = 4;
/// What a replica sent before its death is stored after this time.
const SETTLED: Duration = Duration::from_millis(50);
/// The bounds for a killed and for a frozen replica.
const KILLED: Duration = Duration::from_secs(2);
const FROZEN: Duration = Duration::from_secs(5);

/// The measured takeovers.
#[derive(Default)]
pub(super) struct Takeovers {
    killed: Vec<Duration>,
    frozen: Vec<Duration>,
}

impl Takeovers {
    /// The number of measurements.
    pub(super) fn count(&self) -> usize {
        self.killed.len() + self.frozen.len()
    }

    /// Waits until nothing is down, sends the active replica a signal, and measures the time to the next block.
    pub(super) async fn measure(&mut self, fixture: &Fixture<'_>, signal: Signal) -> Result<(), Failure> {
        let Fixture { mesh, servers, play, targets, .. } = fixture;
        let within = play.bound(CALM_WITHIN);
        let names: Vec<&str> = targets.iter().map(|(target, _)| target.name).collect();
        let mut calm = mesh.until_serving(&names, within).await;
        let client = servers.connect("").await?;
        calm &= stored(&client, fixture.chain.latest(), within).await.is_ok();
        if !calm {
            return Err(Failure::failed(format!(
                "not everything works again within {within:?} after faults"
            )));
        }
        let before = written(fixture).await;
        stored(&client, head(&client).await? + BLOCKS, within).await?;
        let after = written(fixture).await;
        let wrote = after.iter().map(|(pid, count)| {
            let earlier = before.iter().find(|(other, _)| other == pid).map_or(0, |(_, count)| *count);
            (count.saturating_sub(earlier), *pid)
        });
        let Some((_, active)) = wrote.max() else { return Err(Failure::failed("no replica answers")) };
        let begun = Instant::now();
        send(active, signal)?;
        sleep(SETTLED).await;
        let height = head(&client).await?;
        let taken = stored(&client, height + 1, within).await;
        let took = begun.elapsed();
        if signal == Signal::STOP {
            send(active, Signal::CONT)?;
        }
        taken?;
        print_line(&format!("{signal:?} of the active replica: the next block after {took:.2?}"));
        let of_signal = if signal == Signal::STOP { &mut self.frozen } else { &mut self.killed };
        of_signal.push(took);
        Ok(())
    }

    /// Adds the bars of the longest takeovers.
    pub(super) fn hold(&self, play: &PlayArgs, report: &mut Report) {
        for (what, found, bound) in [("kill -9", &self.killed, KILLED), ("SIGSTOP", &self.frozen, FROZEN)] {
            if let Some(longest) = found.iter().max() {
                let what = format!("next block after {what} of the active replica, worst of {}", found.len());
                report.bar_at_most(&what, *longest, play.bound(bound));
            }
        }
    }
}

/// The number of blocks that each replica has written, by process id.
async fn written(fixture: &Fixture<'_>) -> Vec<(u32, u64)> {
    let mut written = Vec::new();
    for row in fixture.mesh.supervisor.rows().iter().filter(|row| row.service == INGEST) {
        if let Some(metrics) = metrics::fetch(row).await {
            written
                .push((row.pid, metrics::sum(&metrics, "mesh_ingest_block_duration_seconds_count") as u64));
        }
    }
    written
}
