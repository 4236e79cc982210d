//! Injects the scheduled faults, each at its time and concurrently where they overlap, and waits for the
//! repair of each.

use std::{cell::RefCell, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use mesh::{
    failure::Failure,
    processes::{NATS, POSTGRES},
    terminal::print_line,
};
use mesh_proxy::Line;
use rustix::process::Signal;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    explanation::FaultSpan,
    links::Links,
    plan::{Fault, ScheduledFault, Target},
    resource_usage::{EdgeRequestCount, current_count},
};
use crate::{
    private::PrivateMesh,
    rig::{faults::send, traffic::Traffic},
};

/// Delay of a delayed link in each direction, and its greatest random addition.
const DELAY: Duration = Duration::from_millis(50);
const JITTER: Duration = Duration::from_millis(10);
/// How long a killed process may take to be ready again.
const BACK_WITHIN: Duration = Duration::from_secs(30);
/// Answers that an edge had sent before it was killed have reached their clients after this time.
const ARRIVED: Duration = Duration::from_millis(50);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Injects faults into a mesh.
pub(super) struct FaultInjector<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) links: &'a Links,
    pub(super) traffic: &'a Traffic,
    pub(super) counted: &'a RefCell<EdgeRequestCount>,
    /// How long a freeze and a delay last.
    pub(super) lasts: Duration,
}

/// An injected fault.
#[derive(Clone, Debug)]
pub(super) struct InjectedFault {
    pub(super) scheduled: ScheduledFault,
    pub(super) span: FaultSpan,
    /// Further information; empty when there is none.
    pub(super) note: String,
}

impl FaultInjector<'_> {
    /// Injects all faults; returns when all are repaired.
    pub(super) async fn run(&self, schedule: &[ScheduledFault]) -> Vec<InjectedFault> {
        let begun = Instant::now();
        let mut running: FuturesUnordered<_> =
            schedule.iter().map(|scheduled| self.inject_at(*scheduled, begun)).collect();
        let mut done = Vec::new();
        while let Some(injected) = running.next().await {
            done.push(injected);
        }
        done.sort_by_key(|done: &InjectedFault| done.scheduled.at);
        done
    }

    async fn inject_at(&self, scheduled: ScheduledFault, begun: Instant) -> InjectedFault {
        sleep_until(begun + scheduled.at).await;
        let from = Instant::now();
        let note = self.inject(scheduled.fault).await.unwrap_or_else(|failure| failure.to_string());
        let to = Instant::now();
        let (at, took) = ((from - begun).as_secs_f64(), (to - from).as_secs_f64());
        print_line(&format!(
            "{at:8.2} s: {}, {took:.2} s{}{note}",
            scheduled.fault,
            if note.is_empty() { "" } else { ", " }
        ));
        InjectedFault { scheduled, span: FaultSpan { fault: scheduled.fault, when: (from, to) }, note }
    }

    async fn inject(&self, fault: Fault) -> Result<String, Failure> {
        match fault {
            Fault::Kill(target) => self.kill(target).await,
            Fault::Freeze(target) => self.freeze(target).await,
            Fault::RestartBus => self.restart(NATS).await,
            Fault::RestartDatabase => self.restart(POSTGRES).await,
            Fault::Delay(name) => {
                let link = self.links.get(name)?;
                link.set(Line { delay: DELAY, jitter: JITTER, ..Line::default() });
                sleep(self.lasts).await;
                link.set(Line::default());
                Ok(String::new())
            }
            Fault::Cut(name, how) => {
                let connections = self.links.get(name)?.cut(how);
                Ok(format!("{connections} connections"))
            }
        }
    }

    async fn kill(&self, target: Target) -> Result<String, Failure> {
        let Some(pid) = self.pid(target) else { return Ok("it was not there".to_owned()) };
        if target.name == "edge" {
            let answers = self.traffic.answers();
            let counted = current_count(self.mesh, pid).await.unwrap_or_default();
            send(pid, Signal::KILL)?;
            sleep(ARRIVED).await;
            let gap = self.traffic.answers().saturating_sub(answers);
            self.counted.borrow_mut().note_kill(pid, counted, gap);
        } else {
            send(pid, Signal::KILL)?;
        }
        let deadline = Instant::now() + BACK_WITHIN;
        while !self.is_back(target, pid) {
            if Instant::now() >= deadline {
                return Err(Failure::failed(format!("{target} did not come back within {BACK_WITHIN:?}")));
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(String::new())
    }

    /// Whether another process has replaced the killed one, and all replicas of its name are ready.
    fn is_back(&self, target: Target, pid: u32) -> bool {
        self.mesh.serves(target.name) && self.pid(target).is_some_and(|other| other != pid)
    }

    async fn freeze(&self, target: Target) -> Result<String, Failure> {
        let Some(pid) = self.pid(target) else { return Ok("it was not there".to_owned()) };
        send(pid, Signal::STOP)?;
        sleep(self.lasts).await;
        // A graceful stop meanwhile has already woken the process.
        if self.pid(target) == Some(pid) {
            send(pid, Signal::CONT)?;
        }
        Ok(String::new())
    }

    async fn restart(&self, name: &str) -> Result<String, Failure> {
        self.mesh.restart(name).await.map(|_| String::new())
    }

    fn pid(&self, target: Target) -> Option<u32> {
        let rows = self.mesh.supervisor.rows();
        let row = rows.into_iter().find(|row| row.service == target.name && row.replica == target.replica);
        row.map(|row| row.pid)
    }
}
