//! `mesh rig kill`: downloads under failing workers, servers and other clients.
//!
//! A synthetic history is downloaded from three workers through one edge, in files of many sizes and at many
//! paces. Every byte is compared with the expected one, and the longest wait of each download is measured.

mod fixture;
mod large;
mod outages;
mod stalled;

use std::time::Duration;

use fixture::{AT_ONCE, WORKERS};
use mesh::failure::Failure;
use rand::rngs::SmallRng;

use super::{
    args::SLACK,
    clients::{download_results::Report, files::Files},
    engine::{Drill, Phase, Play, Playing, one, phase, several},
    world::World,
};

/// Number of downloads in the phase without faults.
const STEADY: usize = 300;
const STEADY_SHORT: usize = 40;
/// Longest duration of a slow download in that phase.
const SLOW: Duration = Duration::from_secs(2);

pub(super) const DRILL: Drill = Drill {
    name: "kill",
    about: "Kills workers and servers under downloads; downloads must complete",
    options: &[SLACK],
    play: Play::Phases(Playing {
        world: |options, _| fixture::setup(options.play().run.short),
        setup: |world| {
            let (megabytes, segments) =
                (world.files.largest().bytes.len() / 1_000_000, world.files.plan().segments);
            format!("{WORKERS} workers, {segments} segments of {megabytes} MB in all")
        },
        becomes_normal: |world| Box::pin(world.downloads_are_normal()),
        // Enough for writing and reading ten gigabytes.
        timeout: Duration::from_secs(1200),
        phases: PHASES,
    }),
};

const PHASES: &[Phase] = &[
    phase("steady", "No fault", |world, random| one(steady(world, random))),
    phase("kill", "A worker is killed every second", |world, random| one(outages::kill(world, random))),
    phase("freeze", "A worker is frozen and woken repeatedly", |world, random| {
        one(outages::freeze(world, random))
    }),
    phase("nats", "The bus is killed and restarted", |world, random| one(outages::nats(world, random))),
    phase("postgres", "The database is unavailable", |world, random| one(outages::postgres(world, random))),
    phase("scale", "A worker is removed during many downloads", |world, random| {
        one(outages::scale(world, random))
    }),
    phase("stalled", "Thousands of clients read almost nothing", |world, _| one(stalled::stalled(world))),
    phase("large", "Downloads of many gigabytes, over HTTP and over gRPC", |world, _| {
        several(large::large(world))
    }),
];

async fn steady(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let downloads = world.mixed(world.play.either(STEADY, STEADY_SHORT), SLOW, random, Files::any);
    let results = world.start_downloads(downloads, AT_ONCE).results().await;
    let mut report = Report::of_downloads("steady", &results);
    report.none_fails();
    Ok(report)
}
