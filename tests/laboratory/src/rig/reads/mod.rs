//! `mesh rig reads`: reads go on while replicas and servers do not.
//!
//! A load sends a fixed number of reads a second independently of earlier answers, and every read is
//! measured.

mod fixture;
mod phases;

use std::time::Duration;

use fixture::Fixture;
use mesh::failure::Failure;
use mesh_launcher::RestartRule;
use rand::rngs::SmallRng;

use super::{
    clients::samples::{Figures, Report},
    engine::{PhasedDrill, on_private_mesh, run_phases},
    seed,
};
use crate::rig::args::{ReadsArgs, ReadsPhase};

/// Runs the drill.
pub(super) async fn drill(args: &ReadsArgs) -> Result<(), Failure> {
    on_private_mesh(RestartRule::default(), async |mesh| {
        let seed = seed(args.play.run.seed);
        let fixture = Fixture::start(mesh, args, seed).await?;
        run_phases(&fixture, &args.play, &args.phase, seed).await
    })
    .await
}

impl PhasedDrill for Fixture<'_> {
    const NAME: &'static str = "reads";
    const PHASE_TIMEOUT: Duration = Duration::from_secs(300);
    type Phase = ReadsPhase;
    type Figures = Figures;

    fn setup(&self) -> String {
        format!("{} requests a second", self.rate)
    }

    async fn becomes_normal(&self) -> bool {
        self.becomes_normal().await
    }

    async fn run(&self, phase: ReadsPhase, random: &mut SmallRng) -> Result<Vec<Report>, Failure> {
        phases::run(self, phase, random).await
    }
}
