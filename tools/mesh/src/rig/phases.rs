//! What happens to the mesh under load, one function each, and what must hold meanwhile.

mod aborted;
mod order;
mod replicas;
mod servers;

use std::time::Duration;

use rand::rngs::SmallRng;

use super::report::Report;
use super::stage::Stage;
use crate::cli::PhaseName;
use crate::failure::Failure;

/// How long service without an event is looked at.
const STEADY: Duration = Duration::from_secs(5);

/// Goes through one phase.
pub(super) async fn play(
    stage: &Stage<'_>,
    name: PhaseName,
    random: &mut SmallRng,
) -> Result<Vec<Report>, Failure> {
    match name {
        PhaseName::Steady => steady(stage).await,
        PhaseName::Kill => replicas::kill(stage, random).await,
        PhaseName::Freeze => replicas::freeze(stage, random).await,
        PhaseName::Rolling => replicas::rolling(stage).await,
        PhaseName::Postgres => servers::postgres(stage).await,
        PhaseName::Nats => servers::nats(stage).await,
        PhaseName::Abort => aborted::abort(stage).await,
        PhaseName::Order => order::order(stage, random).await,
    }
}

async fn steady(stage: &Stage<'_>) -> Result<Vec<Report>, Failure> {
    let from = stage.load.now();
    stage.look_on(STEADY).await;
    let (_, mut report) = stage.report("steady", from).await;
    report.none_fails();
    Ok(vec![report])
}
