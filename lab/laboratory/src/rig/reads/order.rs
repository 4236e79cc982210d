//! Phase "order": services are started in random order before their servers. They must wait, and become ready
//! when the servers are there.

use std::time::Duration;

use mesh::{
    failure::Failure,
    processes::{NATS, POSTGRES},
};
use mesh_launcher::{control::Request, services::runnable};
use mesh_testbed::poll;
use rand::{Rng as _, rngs::SmallRng, seq::SliceRandom as _};
use tokio::time::sleep;

use super::{Report, World};
use crate::private::UNCACHED_EDGE;

/// Number of orders, in the long form and in the short one.
const ORDERS: u32 = 3;
const ORDERS_SHORT: u32 = 1;
/// Longest pause between two starts, milliseconds.
const PAUSE_MS: u64 = 600;
/// How long the services run without servers.
const ALONE: Duration = Duration::from_millis(700);
/// Longest time from the last server's start until all services are ready.
const READY_WITHIN: Duration = Duration::from_secs(2);
/// How long the load is measured afterwards.
const AFTER: Duration = Duration::from_secs(2);

/// Stops everything and starts it again, the servers last.
pub(super) async fn order(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    world.load().pause();
    world.load().until_finished(world.load().now()).await;
    let mut tried = Vec::new();
    let orders = if world.play.run.short { ORDERS_SHORT } else { ORDERS };
    for _ in 0..orders {
        tried.push(one(world, random).await);
    }
    world.load().resume();
    let is_normal = world.reads_are_normal().await;
    let from = world.load().now();
    world.sleep_scaled(AFTER).await;
    let (_, mut report) = world.load().report("any order", from).await;
    report.bar("service is as usual afterwards", is_normal);
    report.none_fails();
    for tried in tried {
        let OrderResult { order, waited, same, ready_after } = tried?;
        report.bar(format!("{order}: services wait for their servers"), waited);
        report.bar(format!("{order}: none of them is started again"), same);
        report.bar_at_most(&format!("{order}: all ready"), ready_after, world.play.bound(READY_WITHIN));
    }
    Ok(report)
}

/// The result of one order.
struct OrderResult {
    order: String,
    waited: bool,
    same: bool,
    ready_after: Duration,
}

async fn one(world: &World<'_>, random: &mut SmallRng) -> Result<OrderResult, Failure> {
    let mut services: Vec<&str> =
        runnable(false).map(|service| service.name).chain([UNCACHED_EDGE]).collect();
    let mut servers = [POSTGRES, NATS];
    for name in services.iter().chain(&servers) {
        world.mesh.stop_all(name).await?;
    }
    services.shuffle(random);
    servers.shuffle(random);
    let mut starts = Vec::new();
    for name in &services {
        starts.push(start(world, name));
        pause(random).await;
    }
    let any_ready = async || {
        let readiness = world.mesh.supervisor.standing();
        let is_ready = |name: &str| readiness.iter().any(|(other, ready, _)| other == name && *ready > 0);
        services.iter().any(|name| is_ready(name)).then_some(()).ok_or(())
    };
    let waited = poll(ALONE, any_ready).await.is_err();
    let before = world.mesh.service_pids();
    for name in servers {
        starts.push(start(world, name));
        match name {
            POSTGRES => world.servers.database_is_back().await?,
            _ => world.servers.bus_is_back().await?,
        }
        if name != servers[1] {
            pause(random).await;
        }
    }
    let there = world.load().now();
    world.mesh.ready(&services).await?;
    let ready_after = world.load().now() - there;
    let same = before == world.mesh.service_pids();
    for start in starts {
        // Errors are ignored: readiness was measured above.
        let _ = start.await;
    }
    Ok(OrderResult { order: [&services[..], &servers].concat().join(", "), waited, same, ready_after })
}

/// Starts a process without waiting until it is ready.
fn start(world: &World<'_>, name: &str) -> tokio::task::JoinHandle<()> {
    let (supervisor, name) = (world.mesh.supervisor.clone(), name.to_owned());
    tokio::spawn(async move {
        supervisor.answer(Request::Start { name, replica: None }).await;
    })
}

async fn pause(random: &mut SmallRng) {
    sleep(Duration::from_millis(random.random_range(0..PAUSE_MS))).await;
}
