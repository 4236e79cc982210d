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
    fixture::{AT_ONCE, Fixture},
};
use crate::rig::{args::KillPhase, clients::files::Files};

/// Number of downloads in the phase without faults.
const STEADY: usize = 300;
const STEADY_SHORT: usize = 40;
/// Longest duration of a slow download in that phase.
const SLOW: Duration = Duration::from_secs(2);

/// Runs one phase.
pub(super) async fn run(
    fixture: &Fixture<'_>,
    name: KillPhase,
    random: &mut SmallRng,
) -> Result<Vec<Report>, Failure> {
    let before = fixture.pulls().await;
    let mut reports = match name {
        KillPhase::Steady => vec![steady(fixture, random).await],
        KillPhase::Kill => vec![workers::kill(fixture, random).await?],
        KillPhase::Freeze => vec![workers::freeze(fixture, random).await?],
        KillPhase::Scale => vec![workers::scale(fixture, random).await?],
        KillPhase::Nats => vec![servers::nats(fixture, random).await?],
        KillPhase::Postgres => vec![servers::postgres(fixture, random).await?],
        KillPhase::Damage => vec![damage::damage(fixture, random).await?],
        KillPhase::Stalled => vec![stalled::stalled(fixture).await?],
        KillPhase::Large => large::large(fixture).await?,
    };
    if let (Some((pulls, again)), Some((all, all_again))) = (before, fixture.pulls().await) {
        let (pulls, again) = (all.saturating_sub(pulls), all_again.saturating_sub(again));
        if let Some(report) = reports.last_mut() {
            report.notes.push(format!("{pulls} pulls, {again} of them sent again"));
        }
    }
    Ok(reports)
}

async fn steady(fixture: &Fixture<'_>, random: &mut SmallRng) -> Report {
    let downloads = fixture.mixed(fixture.play.either(STEADY, STEADY_SHORT), SLOW, random, Files::any);
    let results = fixture.start_downloads(downloads, AT_ONCE).results().await;
    let mut report = Report::of_downloads("steady", &results);
    report.none_fails();
    report
}
