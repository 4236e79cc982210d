//! Phases "kill", "freeze" and "rolling": a replica is killed, frozen or replaced. Clients may see a slow
//! second, but no failure.

use std::time::Duration;

use mesh::failure::Failure;
use mesh_launcher::control::Request;
use rand::rngs::SmallRng;
use rustix::process::Signal;

use crate::rig::{
    clients::samples::normal_after,
    faults::send,
    reads::{Report, fixture::Fixture},
    report::in_ms,
};

/// The service whose replica fails.
const SERVICE: &str = "query";
/// Greatest p99 of reads in the worst second.
const P99: Duration = Duration::from_millis(1500);
/// Length of a freeze.
const FROZEN: Duration = Duration::from_secs(5);
/// How long the load is measured after the fault.
const AFTER: Duration = Duration::from_secs(3);
/// A read that takes longer counts as slow.
const SLOW: Duration = Duration::from_millis(100);

/// Kills one replica; the supervisor restarts it.
pub(super) async fn kill(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Vec<Report>, Failure> {
    let from = fixture.load.now();
    fixture.mesh.kill_one(SERVICE, random).await?;
    fixture.mesh.ready(&[SERVICE]).await?;
    let ready_after = fixture.load.now() - from;
    fixture.sleep_scaled(AFTER).await;
    let mut report = missed(fixture, "kill query", from).await;
    report.notes.push(format!("its successor was ready after {}", in_ms(ready_after)));
    Ok(vec![report])
}

/// Freezes and wakes one replica.
pub(super) async fn freeze(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Vec<Report>, Failure> {
    let pid = fixture.mesh.random_replica(SERVICE, random)?;
    let from = fixture.load.now();
    send(pid, Signal::STOP)?;
    fixture.sleep_scaled(FROZEN).await;
    send(pid, Signal::CONT)?;
    fixture.sleep_scaled(AFTER).await;
    let mut report = missed(fixture, "freeze query", from).await;
    report.bar("the frozen replica lives on", fixture.mesh.pids(SERVICE).contains(&pid));
    Ok(vec![report])
}

async fn missed(fixture: &Fixture<'_>, name: &str, from: Duration) -> Report {
    let (samples, mut report) = fixture.report(name, from).await;
    report.figures.normal_after = Some(normal_after(&samples, from, fixture.play.bound(SLOW)));
    report.none_fails();
    report.bar_at_most("p99 in the worst second", report.figures.worst_p99, fixture.play.bound(P99));
    report
}

/// Replaces the replicas of each service one after the other, with a second edge meanwhile.
pub(super) async fn rolling(fixture: &Fixture<'_>) -> Result<Vec<Report>, Failure> {
    let mut reports = vec![restart(fixture, "query").await?, restart(fixture, "node-info").await?];
    let scale = |replicas| Request::Scale { name: "edge".to_owned(), replicas };
    fixture.mesh.order(scale(2)).await?;
    let normal = fixture.becomes_normal().await;
    let mut report = restart(fixture, "edge").await?;
    report.bar("two edges serve as one does", normal);
    let from = fixture.load.now();
    fixture.mesh.order(scale(1)).await?;
    fixture.sleep_scaled(AFTER / 2).await;
    let (_, fewer) = fixture.report("fewer edges", from).await;
    report.notes.push(format!(
        "when one of the two left: {} of {} reads failed, {} were asked again",
        fewer.figures.requests - fewer.figures.fine,
        fewer.figures.requests,
        fewer.figures.again
    ));
    reports.push(report);
    Ok(reports)
}

async fn restart(fixture: &Fixture<'_>, name: &str) -> Result<Report, Failure> {
    let from = fixture.load.now();
    let (new, all_new) = fixture.mesh.restart(name).await?;
    let took = fixture.load.now() - from;
    fixture.sleep_scaled(AFTER / 2).await;
    let (samples, mut report) = fixture.report(&format!("restart {name}"), from).await;
    report.figures.normal_after = Some(normal_after(&samples, from, fixture.play.bound(SLOW)));
    report.none_fails();
    report.bar(format!("all {new} replicas are new"), all_new);
    report.notes.push(format!("the restart took {}", in_ms(took)));
    Ok(report)
}
