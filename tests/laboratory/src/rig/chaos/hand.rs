//! The hand that does it: each act at its time, side by side where they overlap, each until everything about
//! it is mended.

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

/// A delayed line is later by so much each way, and by up to so much more.
const DELAY: Duration = Duration::from_millis(50);
const JITTER: Duration = Duration::from_millis(10);
/// How long what was killed may take to serve again.
const BACK_WITHIN: Duration = Duration::from_secs(30);
/// Answers that an edge had sent when it was killed are with their clients after this time.
const ARRIVED: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_millis(10);

/// What the hand works on.
pub(super) struct Hand<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) lines: &'a Lines,
    pub(super) traffic: &'a Traffic,
    pub(super) counted: &'a RefCell<Counted>,
    /// How long a freeze and a delay last.
    pub(super) lasts: Duration,
}

/// An act that was done.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) act: Act,
    pub(super) happened: Happened,
    /// What there is to say about it.
    pub(super) note: String,
}

impl Hand<'_> {
    /// Does everything, and comes back when everything is mended.
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

    /// Whether there is another process in the place of one that was killed, and all of its name serve.
    fn is_back(&self, party: Party, pid: u32) -> bool {
        self.mesh.serves(party.name) && self.pid(party).is_some_and(|other| other != pid)
    }

    async fn freeze(&self, party: Party) -> Result<String, Failure> {
        let Some(pid) = self.pid(party) else { return Ok("it was not there".to_owned()) };
        send(pid, Signal::STOP)?;
        sleep(self.lasts).await;
        // One that was stopped in order meanwhile was woken for that.
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
