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

use super::{Fixture, Report};
use crate::{private::UNCACHED_EDGE, rig::engine::PhasedDrill as _};

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
pub(super) async fn order(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    fixture.load.pause();
    fixture.load.until_finished(fixture.load.now()).await;
    let mut tried = Vec::new();
    let orders = if fixture.play.run.short { ORDERS_SHORT } else { ORDERS };
    for _ in 0..orders {
        tried.push(one(fixture, random).await);
    }
    fixture.load.resume();
    let is_normal = fixture.becomes_normal().await;
    let from = fixture.load.now();
    fixture.sleep_scaled(AFTER).await;
    let (_, mut report) = fixture.load.report("any order", from).await;
    report.bar("service is as usual afterwards", is_normal);
    report.none_fails();
    for tried in tried {
        let OrderResult { order, waited, same, ready_after } = tried?;
        report.bar(format!("{order}: services wait for their servers"), waited);
        report.bar(format!("{order}: none of them is started again"), same);
        report.bar_at_most(&format!("{order}: all ready"), ready_after, fixture.play.bound(READY_WITHIN));
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

async fn one(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<OrderResult, Failure> {
    let mut services: Vec<&str> =
        runnable(false).map(|service| service.name).chain([UNCACHED_EDGE]).collect();
    let mut servers = [POSTGRES, NATS];
    for name in services.iter().chain(&servers) {
        fixture.mesh.stop_all(name).await?;
    }
    services.shuffle(random);
    servers.shuffle(random);
    let mut starts = Vec::new();
    for name in &services {
        starts.push(start(fixture, name));
        pause(random).await;
    }
    let any_ready = async || {
        let readiness = fixture.mesh.supervisor.standing();
        let is_ready = |name: &str| readiness.iter().any(|(other, ready, _)| other == name && *ready > 0);
        services.iter().any(|name| is_ready(name)).then_some(()).ok_or(())
    };
    let waited = poll(ALONE, any_ready).await.is_err();
    let before = fixture.mesh.service_pids();
    for name in servers {
        starts.push(start(fixture, name));
        match name {
            POSTGRES => fixture.servers.database_is_back().await?,
            _ => fixture.servers.bus_is_back().await?,
        }
        if name != servers[1] {
            pause(random).await;
        }
    }
    let there = fixture.load.now();
    fixture.mesh.ready(&services).await?;
    let ready_after = fixture.load.now() - there;
    let same = before == fixture.mesh.service_pids();
    for start in starts {
        // Errors are ignored: readiness was measured above.
        let _ = start.await;
    }
    Ok(OrderResult { order: [&services[..], &servers].concat().join(", "), waited, same, ready_after })
}

/// Starts a process without waiting until it is ready.
fn start(fixture: &Fixture<'_>, name: &str) -> tokio::task::JoinHandle<()> {
    let (supervisor, name) = (fixture.mesh.supervisor.clone(), name.to_owned());
    tokio::spawn(async move {
        supervisor.answer(Request::Start { name, replica: None }).await;
    })
}

async fn pause(random: &mut SmallRng) {
    sleep(Duration::from_millis(random.random_range(0..PAUSE_MS))).await;
}
