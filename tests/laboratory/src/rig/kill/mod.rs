//! `mesh rig kill`: downloads go on while workers, servers, segments and other clients do not.
//!
//! A synthetic history is downloaded from three workers through one edge, in files of many sizes and at many
//! paces. Every byte is compared with the expected one, and the longest wait of each download is measured.

mod fixture;
mod phases;

use std::time::Duration;

use fixture::Fixture;
use mesh::{failure::Failure, open_files};
use rand::rngs::SmallRng;

use super::{
    clients::download_results::{Figures, Report},
    engine::{PhasedDrill, RESTARTED_SOON, on_private_mesh, run_phases},
    seed,
};
use crate::rig::args::{KillArgs, KillPhase};

/// Runs the drill.
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
        let plan = self.files.plan();
        let megabytes = self.files.largest().bytes.len() / 1_000_000;
        format!("{} workers, {} segments of {megabytes} MB in all", fixture::WORKERS, plan.segments)
    }

    async fn becomes_normal(&self) -> bool {
        self.becomes_normal().await
    }

    async fn run(&self, phase: KillPhase, random: &mut SmallRng) -> Result<Vec<Report>, Failure> {
        phases::run(self, phase, random).await
    }
}
