//! `mesh rig flood`: reads go on while others attack.
//!
//! In each phase the load runs undisturbed for a while, and then together with attackers from other addresses
//! of the loopback network. The load must not fail or become slow; the edge must close each attacker's
//! connection in time.

mod attackers;
mod edges;
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
use crate::rig::args::{FloodArgs, FloodPhase};

/// Runs the drill.
pub(super) async fn drill(args: &FloodArgs) -> Result<(), Failure> {
    mesh::open_files::raise();
    on_private_mesh(RestartRule::default(), async |mesh| {
        let seed = seed(args.play.run.seed);
        let fixture = Fixture::start(mesh, args, seed).await?;
        run_phases(&fixture, &args.play, &args.phase, seed).await
    })
    .await
}

impl PhasedDrill for Fixture<'_> {
    const NAME: &'static str = "flood";
    const PHASE_TIMEOUT: Duration = Duration::from_secs(300);
    type Phase = FloodPhase;
    type Figures = Figures;

    fn setup(&self) -> String {
        format!("{} requests a second beside {} attackers", self.rate, self.attacker_count)
    }

    async fn becomes_normal(&self) -> bool {
        self.becomes_normal().await
    }

    async fn run(&self, phase: FloodPhase, _: &mut SmallRng) -> Result<Vec<Report>, Failure> {
        phases::run(self, phase).await
    }
}
