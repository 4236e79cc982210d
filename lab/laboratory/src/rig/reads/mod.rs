//! `mesh rig reads`: reads under failing replicas and servers.
//!
//! A private mesh with two replicas of the services under test, filled tables, and a block every second serves a
//! load that sends a fixed number of reads a second independently of earlier answers; every read is measured.

mod outages;

use std::time::Duration;

use mesh::failure::Failure;
use tokio::time::sleep;

use super::{
    args::{READ_RATE, SLACK},
    clients::{load::NORMAL_P99, samples::Report},
    engine::{Drill, Phase, Play, Playing, one, phase},
    world::{Setup, World},
};

/// Replicas of the services under test.
const REPLICAS: [(&str, u32); 2] = [("query", 2), ("node-info", 2)];
/// How long the service may take to become normal between two phases.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Length of the phase without faults.
const STEADY: Duration = Duration::from_secs(5);

pub(super) const DRILL: Drill = Drill {
    name: "reads",
    about: "Kills replicas and servers under reads; reads must continue",
    options: &[SLACK, READ_RATE],
    play: Play::Phases(Playing {
        world: |options, _| Setup {
            has_rows: true,
            has_blocks: true,
            replicas: REPLICAS.to_vec(),
            rate: Some(options.number("rate")),
            ..Setup::default()
        },
        setup: |world| format!("{} requests a second", world.options.number("rate")),
        becomes_normal: |world| Box::pin(world.reads_are_normal()),
        timeout: Duration::from_secs(300),
        phases: PHASES,
    }),
};

pub(super) const PHASES: &[Phase] = &[
    phase("steady", "No fault", |world, _| one(steady(world))),
    phase("kill", "A replica is killed", |world, random| one(outages::kill(world, random))),
    phase("freeze", "A replica is frozen and woken", |world, random| one(outages::freeze(world, random))),
    phase("postgres", "The database is stopped and started", |world, _| one(outages::postgres(world))),
    phase("nats", "The bus is killed and restarted", |world, _| one(outages::nats(world))),
];

async fn steady(world: &World<'_>) -> Result<Report, Failure> {
    let from = world.load().now();
    world.sleep_scaled(STEADY).await;
    let (_, mut report) = world.load().report("steady", from).await;
    report.none_fails();
    Ok(report)
}

impl World<'_> {
    /// Waits until reads are fast and succeed; returns whether they do.
    async fn reads_are_normal(&self) -> bool {
        self.load().becomes_normal(self.play.bound(NORMAL_P99), TIMEOUT).await
    }

    /// Sleeps for a time, half of it in the short form.
    async fn sleep_scaled(&self, time: Duration) {
        sleep(self.play.either(time, time / 2)).await;
    }
}
