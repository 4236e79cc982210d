//! The phases of the drill, one function each, and their bars.

mod aborted;
mod order;
mod replicas;
mod servers;

use std::time::Duration;

use mesh::failure::Failure;
use rand::rngs::SmallRng;

use super::{Report, stage::Stage};
use crate::rig::args::ReadsPhase;

/// Length of the phase without faults.
const STEADY: Duration = Duration::from_secs(5);

/// Runs one phase.
pub(super) async fn run(
    stage: &Stage<'_>,
    name: ReadsPhase,
    random: &mut SmallRng,
) -> Result<Vec<Report>, Failure> {
    match name {
        ReadsPhase::Steady => steady(stage).await,
        ReadsPhase::Kill => replicas::kill(stage, random).await,
        ReadsPhase::Freeze => replicas::freeze(stage, random).await,
        ReadsPhase::Rolling => replicas::rolling(stage).await,
        ReadsPhase::Postgres => servers::postgres(stage).await,
        ReadsPhase::Nats => servers::nats(stage, random).await,
        ReadsPhase::Abort => aborted::abort(stage).await,
        ReadsPhase::Order => order::order(stage, random).await,
    }
}

async fn steady(stage: &Stage<'_>) -> Result<Vec<Report>, Failure> {
    let from = stage.load.now();
    stage.look_on(STEADY).await;
    let (_, mut report) = stage.report("steady", from).await;
    report.none_fails();
    Ok(vec![report])
}
