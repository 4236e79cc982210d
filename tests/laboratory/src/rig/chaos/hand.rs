//! Injects the scheduled faults, each at its time and concurrently where they overlap, and waits for the repair of
//! each.

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
    explain::Happened,
    levels::{Counted, counted_by},
    lines::Lines,
    plan::{Act, Fault, Party},
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
const LOOK: Duration = Duration::from_millis(10);

/// Injects faults into a mesh.
pub(super) struct Hand<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) lines: &'a Lines,
    pub(super) traffic: &'a Traffic,
    pub(super) counted: &'a RefCell<Counted>,
    /// How long a freeze and a delay last.
    pub(super) lasts: Duration,
}

/// An injected fault.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) act: Act,
    pub(super) happened: Happened,
    /// Further information; empty when there is none.
    pub(super) note: String,
}

impl Hand<'_> {
    /// Injects all faults; returns when all are repaired.
    pub(super) async fn act(&self, acts: &[Act]) -> Vec<Done> {
        let begun = Instant::now();
        let mut doing: FuturesUnordered<_> = acts.iter().map(|act| self.one(*act, begun)).collect();
        let mut done = Vec::new();
        while let Some(one) = doing.next().await {
            done.push(one);
        }
        done.sort_by_key(|done: &Done| done.act.at);
        done
    }

    async fn one(&self, act: Act, begun: Instant) -> Done {
        sleep_until(begun + act.at).await;
        let from = Instant::now();
        let note = self.do_it(act.fault).await.unwrap_or_else(|failure| failure.to_string());
        let to = Instant::now();
        let (at, took) = ((from - begun).as_secs_f64(), (to - from).as_secs_f64());
        print_line(&format!(
            "{at:8.2} s: {}, {took:.2} s{}{note}",
            act.fault,
            if note.is_empty() { "" } else { ", " }
        ));
        Done { act, happened: Happened { fault: act.fault, when: (from, to) }, note }
    }

    async fn do_it(&self, fault: Fault) -> Result<String, Failure> {
        match fault {
            Fault::Kill(party) => self.kill(party).await,
            Fault::Freeze(party) => self.freeze(party).await,
            Fault::RestartBus => self.restart(NATS).await,
            Fault::RestartDatabase => self.restart(POSTGRES).await,
            Fault::Delay(name) => {
                let line = self.lines.get(name)?;
                line.set(Line { delay: DELAY, jitter: JITTER, ..Line::default() });
                sleep(self.lasts).await;
                line.set(Line::default());
                Ok(String::new())
            }
            Fault::Cut(name, how) => {
                let connections = self.lines.get(name)?.cut(how);
                Ok(format!("{connections} connections"))
            }
        }
    }

    async fn kill(&self, party: Party) -> Result<String, Failure> {
        let Some(pid) = self.pid(party) else { return Ok("it was not there".to_owned()) };
        if party.name == "edge" {
            let answers = self.traffic.answers();
            let counted = counted_by(self.mesh, pid).await.unwrap_or_default();
            send(pid, Signal::KILL)?;
            sleep(ARRIVED).await;
            let gap = self.traffic.answers().saturating_sub(answers);
            self.counted.borrow_mut().note_kill(pid, counted, gap);
        } else {
            send(pid, Signal::KILL)?;
        }
        let deadline = Instant::now() + BACK_WITHIN;
        while !self.is_back(party, pid) {
            if Instant::now() >= deadline {
                return Err(Failure::failed(format!("{party} did not come back within {BACK_WITHIN:?}")));
            }
            sleep(LOOK).await;
        }
        Ok(String::new())
    }

    /// Whether another process has replaced the killed one, and all replicas of its name are ready.
    fn is_back(&self, party: Party, pid: u32) -> bool {
        self.mesh.serves(party.name) && self.pid(party).is_some_and(|other| other != pid)
    }

    async fn freeze(&self, party: Party) -> Result<String, Failure> {
        let Some(pid) = self.pid(party) else { return Ok("it was not there".to_owned()) };
        send(pid, Signal::STOP)?;
        sleep(self.lasts).await;
        // A graceful stop meanwhile has already woken the process.
        if self.pid(party) == Some(pid) {
            send(pid, Signal::CONT)?;
        }
        Ok(String::new())
    }

    async fn restart(&self, name: &str) -> Result<String, Failure> {
        self.mesh.restart(name).await.map(|_| String::new())
    }

    fn pid(&self, party: Party) -> Option<u32> {
        let rows = self.mesh.supervisor.rows();
        let row = rows.into_iter().find(|row| row.service == party.name && row.replica == party.replica);
        row.map(|row| row.pid)
    }
}
