//! The phases of the drill, one function each, and their bars.

mod aborted;
mod order;
mod replicas;
mod servers;

use std::time::Duration;

use mesh::failure::Failure;
use rand::rngs::SmallRng;

use super::{Report, fixture::Fixture};
use crate::rig::args::ReadsPhase;

/// Length of the phase without faults.
const STEADY: Duration = Duration::from_secs(5);

/// Runs one phase.
pub(super) async fn run(
    fixture: &Fixture<'_>,
    name: ReadsPhase,
    random: &mut SmallRng,
) -> Result<Vec<Report>, Failure> {
    match name {
        ReadsPhase::Steady => steady(fixture).await,
        ReadsPhase::Kill => replicas::kill(fixture, random).await,
        ReadsPhase::Freeze => replicas::freeze(fixture, random).await,
        ReadsPhase::Rolling => replicas::rolling(fixture).await,
        ReadsPhase::Postgres => servers::postgres(fixture).await,
        ReadsPhase::Nats => servers::nats(fixture, random).await,
        ReadsPhase::Abort => aborted::abort(fixture).await,
        ReadsPhase::Order => order::order(fixture, random).await,
    }
}

async fn steady(fixture: &Fixture<'_>) -> Result<Vec<Report>, Failure> {
    let from = fixture.load.now();
    fixture.sleep_scaled(STEADY).await;
    let (_, mut report) = fixture.report("steady", from).await;
    report.none_fails();
    Ok(vec![report])
}
