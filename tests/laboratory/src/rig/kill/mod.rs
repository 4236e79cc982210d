//! `mesh rig kill`: downloads under failing workers, servers, segments and other clients.
//!
//! A synthetic history is downloaded from three workers through one edge, in files of many sizes and at many
//! paces. Every byte is compared with the expected one, and the longest wait of each download is measured.

mod damage;
mod fixture;
mod large;
mod outages;
mod stalled;

use std::time::Duration;

use fixture::{AT_ONCE, Fixture, WORKERS};
use mesh::failure::Failure;
use mesh_launcher::open_files;
use rand::rngs::SmallRng;

use super::{
    clients::{
        download_results::{Figures, Report},
        files::Files,
    },
    engine::{PhasedDrill, RESTARTED_SOON, on_private_mesh, run_phases},
    seed,
};
use crate::rig::args::{KillArgs, KillPhase};

/// Number of downloads in the phase without faults.
const STEADY: usize = 300;
const STEADY_SHORT: usize = 40;
/// Longest duration of a slow download in that phase.
const SLOW: Duration = Duration::from_secs(2);

/// Runs the drill.
///
/// # Errors
/// When a bar does not hold, or the drill cannot be run.
pub(super) async fn drill(args: &KillArgs) -> Result<(), Failure> {
    open_files::raise();
    on_private_mesh(RESTARTED_SOON, async |mesh| {
        let seed = seed(args.play.run.seed);
        let fixture = Fixture::start(mesh, &args.play, seed).await?;
        run_phases(&fixture, &args.play, &args.phase, seed).await
    })
    .await
}

impl PhasedDrill for Fixture<'_> {
    const NAME: &'static str = "kill";
    /// Enough for writing and reading ten gigabytes.
    const PHASE_TIMEOUT: Duration = Duration::from_secs(1200);
    type Phase = KillPhase;
    type Figures = Figures;

    fn setup(&self) -> String {
        let megabytes = self.files.largest().bytes.len() / 1_000_000;
        format!("{WORKERS} workers, {} segments of {megabytes} MB in all", self.files.plan().segments)
    }

    async fn becomes_normal(&self) -> bool {
        self.becomes_normal().await
    }

    async fn run(&self, phase: KillPhase, random: &mut SmallRng) -> Result<Vec<Report>, Failure> {
        let before = self.pulls().await;
        let mut reports = match phase {
            KillPhase::Steady => vec![steady(self, random).await],
            KillPhase::Kill => vec![outages::kill(self, random).await],
            KillPhase::Freeze => vec![outages::freeze(self, random).await],
            KillPhase::Scale => vec![outages::scale(self, random).await?],
            KillPhase::Nats => vec![outages::nats(self, random).await],
            KillPhase::Postgres => vec![outages::postgres(self, random).await?],
            KillPhase::Damage => vec![damage::damage(self, random).await?],
            KillPhase::Stalled => vec![stalled::stalled(self).await?],
            KillPhase::Large => large::large(self).await?,
        };
        if let (Some((pulls, again)), Some((all, all_again))) = (before, self.pulls().await) {
            let (pulls, again) = (all.saturating_sub(pulls), all_again.saturating_sub(again));
            if let Some(report) = reports.last_mut() {
                report.notes.push(format!("{pulls} pulls, {again} of them sent again"));
            }
        }
        Ok(reports)
    }
}

async fn steady(fixture: &Fixture<'_>, random: &mut SmallRng) -> Report {
    let downloads = fixture.mixed(fixture.play.either(STEADY, STEADY_SHORT), SLOW, random, Files::any);
    let results = fixture.start_downloads(downloads, AT_ONCE).results().await;
    let mut report = Report::of_downloads("steady", &results);
    report.none_fails();
    report
}
