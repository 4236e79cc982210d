//! The phases of the drill, one function each, and their bars.

mod damage;
mod large;
mod servers;
mod stalled;
mod workers;

use std::time::Duration;

use mesh::failure::Failure;
use rand::rngs::SmallRng;

use super::{
    Report,
    stage::{AT_ONCE, Stage},
};
use crate::rig::{args::KillPhase, clients::files::Files};

/// Number of downloads in the phase without faults.
const STEADY: usize = 300;
const STEADY_SHORT: usize = 40;
/// Longest duration of a slow download in that phase.
const SLOW: Duration = Duration::from_secs(2);

/// Runs one phase.
pub(super) async fn run(
    stage: &Stage<'_>,
    name: KillPhase,
    random: &mut SmallRng,
) -> Result<Vec<Report>, Failure> {
    let before = stage.pulls().await;
    let mut reports = match name {
        KillPhase::Steady => vec![steady(stage, random).await],
        KillPhase::Kill => vec![workers::kill(stage, random).await?],
        KillPhase::Freeze => vec![workers::freeze(stage, random).await?],
        KillPhase::Scale => vec![workers::scale(stage, random).await?],
        KillPhase::Nats => vec![servers::nats(stage, random).await?],
        KillPhase::Postgres => vec![servers::postgres(stage, random).await?],
        KillPhase::Damage => vec![damage::damage(stage, random).await?],
        KillPhase::Stalled => vec![stalled::stalled(stage).await?],
        KillPhase::Large => large::large(stage).await?,
    };
    if let (Some((pulls, again)), Some((all, all_again))) = (before, stage.pulls().await) {
        let (pulls, again) = (all.saturating_sub(pulls), all_again.saturating_sub(again));
        if let Some(report) = reports.last_mut() {
            report.notes.push(format!("{pulls} pulls, {again} of them sent again"));
        }
    }
    Ok(reports)
}

async fn steady(stage: &Stage<'_>, random: &mut SmallRng) -> Report {
    let downloads = stage.mixed(stage.either(STEADY, STEADY_SHORT), SLOW, random, Files::any);
    let seen = stage.crowd(downloads, AT_ONCE).seen().await;
    let mut report = Report::of_downloads("steady", &seen);
    report.none_fails();
    report
}
