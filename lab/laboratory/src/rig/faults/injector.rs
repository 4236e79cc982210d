//! Injects scheduled faults, each at its time and concurrently where they overlap, and waits for the repair of
//! each.

use std::{
    cell::RefCell,
    future::{Future, pending},
    pin::pin,
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use mesh::{failure::Failure, terminal::print_line};
use mesh_launcher::control::Request;
use mesh_proxy::{Cut, Line};
use mesh_testbed::poll;
use rustix::process::Signal;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    explanation::FaultSpan,
    links::Links,
    schedule::{Blockage, Fault, Link, ScheduledFault, Target},
    send,
};
use crate::{
    private::PrivateMesh,
    rig::{
        resource_usage::{EdgeRequestCount, current_count},
        traffic::Traffic,
    },
};

/// Delay of a delayed link in each direction, and its greatest random addition.
const DELAY: Duration = Duration::from_millis(50);
const JITTER: Duration = Duration::from_millis(10);
/// How long a killed process may take to be ready again.
const BACK_WITHIN: Duration = Duration::from_secs(30);
/// Answers that an edge had sent before it was killed have reached their clients after this time.
const ARRIVED: Duration = Duration::from_millis(50);

pub(crate) struct FaultInjector<'a> {
    mesh: &'a PrivateMesh,
    links: Option<&'a Links>,
    edge_counts: Option<(&'a Traffic, &'a RefCell<EdgeRequestCount>)>,
    injected: RefCell<Vec<InjectedFault>>,
}

#[derive(Clone, Debug)]
pub(crate) struct InjectedFault {
    pub(crate) scheduled: ScheduledFault,
    pub(crate) span: FaultSpan,
    /// Whether the fault took place and was repaired.
    pub(crate) is_repaired: bool,
    /// Further information, or why it was not repaired; empty when there is none.
    pub(crate) note: String,
}

impl<'a> FaultInjector<'a> {
    /// Injects faults into processes and servers.
    pub(crate) fn new(mesh: &'a PrivateMesh) -> Self {
        Self { mesh, links: None, edge_counts: None, injected: RefCell::default() }
    }

    pub(crate) fn with_links(self, links: &'a Links) -> Self {
        Self { links: Some(links), ..self }
    }

    /// Reads the request count of each edge just before it is killed, and how many answers clients received
    /// after that.
    pub(crate) fn counting(self, traffic: &'a Traffic, counts: &'a RefCell<EdgeRequestCount>) -> Self {
        Self { edge_counts: Some((traffic, counts)), ..self }
    }

    /// Injects all faults; returns them when all are repaired.
    pub(crate) async fn run(&self, schedule: &[ScheduledFault]) -> Vec<InjectedFault> {
        self.run_until(schedule.iter().copied(), usize::MAX, pending()).await;
        let mut injected = self.injected.take();
        injected.sort_by_key(|injected| injected.scheduled.at);
        injected
    }

    /// Injects faults until `over`, at most `at_once` of them concurrently: when a fault has to wait for the
    /// repair of another, all later ones are delayed by the same time. Returns when all are repaired.
    pub(crate) async fn run_until(
        &self,
        schedule: impl IntoIterator<Item = ScheduledFault>,
        at_once: usize,
        over: impl Future<Output = ()>,
    ) {
        let (started, mut delayed) = (Instant::now(), Duration::ZERO);
        let (mut over, mut running) = (pin!(over), FuturesUnordered::new());
        'schedule: for scheduled in schedule {
            let due = started + scheduled.at + delayed;
            while running.len() >= at_once || Instant::now() < due {
                tokio::select! {
                    () = &mut over => break 'schedule,
                    Some(()) = running.next() => {}
                    () = sleep_until(due), if running.len() < at_once => {}
                }
            }
            delayed += due.elapsed();
            running.push(self.inject_now(scheduled, started));
        }
        while running.next().await.is_some() {}
    }

    /// The faults so far, repaired or not.
    pub(crate) fn injected(&self) -> Vec<InjectedFault> {
        self.injected.borrow().clone()
    }

    async fn inject_now(&self, scheduled: ScheduledFault, started: Instant) {
        let from = Instant::now();
        let injected = self.inject(scheduled.fault).await;
        let to = Instant::now();
        let is_repaired = injected.is_ok();
        let note = injected.unwrap_or_else(|failure| failure.to_string());
        let (at, took) = ((from - started).as_secs_f64(), (to - from).as_secs_f64());
        let separator = if note.is_empty() { "" } else { ", " };
        print_line(&format!("{at:8.2} s: {}, {took:.2} s{separator}{note}", scheduled.fault));
        let span = FaultSpan { fault: scheduled.fault, when: (from, to) };
        self.injected.borrow_mut().push(InjectedFault { scheduled, span, is_repaired, note });
    }

    /// Injects a fault and waits for its repair; returns further information.
    async fn inject(&self, fault: Fault) -> Result<String, Failure> {
        match fault {
            Fault::Kill(target) => self.kill(target).await?,
            Fault::Freeze(target, time) => self.freeze(target, time).await?,
            Fault::Restart(name) => {
                self.mesh.restart(name).await?;
            }
            Fault::Stop(Target { name, replica }) => {
                let (name, replica) = (name.to_owned(), Some(replica));
                self.mesh.order(Request::Stop { name: name.clone(), replica }).await?;
                self.mesh.order(Request::Start { name, replica }).await?;
            }
            Fault::Delay(link, time) => {
                let line = Line { delay: DELAY, jitter: JITTER, ..Line::default() };
                self.change_line(link, line, time).await?;
            }
            Fault::Block(link, Blockage::Silent, time) => {
                self.change_line(link, Line { stalls: true, ..Line::default() }, time).await?;
            }
            Fault::Block(link, Blockage::Refused, time) => {
                self.change_line(link, Line { refuses: true, ..Line::default() }, time).await?;
            }
            Fault::Cut(link, how) => {
                let connections: usize = self.links()?.get(link)?.map(|proxy| proxy.cut(how)).sum();
                return Ok(format!("{connections} connections"));
            }
        }
        Ok(String::new())
    }

    /// Changes the state of a link for a time; one that refuses new connections also loses its open ones.
    async fn change_line(&self, link: Link, line: Line, time: Duration) -> Result<(), Failure> {
        for proxy in self.links()?.get(link)? {
            proxy.set(line);
            if line.refuses {
                proxy.cut(Cut::Reset);
            }
        }
        sleep(time).await;
        self.links()?.get(link)?.for_each(|proxy| proxy.set(Line::default()));
        Ok(())
    }

    async fn kill(&self, target: Target) -> Result<(), Failure> {
        let pid = self.pid(target)?;
        match self.edge_counts {
            Some((traffic, counts)) if target.name == "edge" => {
                let answers = traffic.answers();
                // An edge counts an answer after its client has it.
                sleep(ARRIVED).await;
                let count = current_count(self.mesh, pid).await.unwrap_or_default();
                signal(pid, Signal::KILL)?;
                sleep(ARRIVED).await;
                let gap = traffic.answers().saturating_sub(answers);
                counts.borrow_mut().note_kill(pid, count, gap);
            }
            _ => signal(pid, Signal::KILL)?,
        }
        let is_back = async || match self.pid(target) {
            Ok(other) if other != pid && self.mesh.serves(target.name) => Ok(()),
            _ => Err(Failure::failed(format!("{target} did not restart within {BACK_WITHIN:?}"))),
        };
        poll(BACK_WITHIN, is_back).await
    }

    async fn freeze(&self, target: Target, time: Duration) -> Result<(), Failure> {
        let pid = self.pid(target)?;
        signal(pid, Signal::STOP)?;
        let frozen = FrozenProcess { injector: self, target, pid };
        sleep(time).await;
        drop(frozen);
        Ok(())
    }

    fn pid(&self, target: Target) -> Result<u32, Failure> {
        let rows = self.mesh.supervisor.rows();
        let row = rows.into_iter().find(|row| row.service == target.name && row.replica == target.replica);
        row.map(|row| row.pid).ok_or_else(absent)
    }

    fn links(&self) -> Result<&Links, Failure> {
        self.links.ok_or_else(|| Failure::failed("this mesh has no links"))
    }
}

/// Sends a signal. The process may have ended since its id was read.
fn signal(pid: u32, signal: Signal) -> Result<(), Failure> {
    send(pid, signal).map_err(|_| absent())
}

fn absent() -> Failure {
    Failure::failed("it was not there")
}

/// A stopped process. It is continued when this is dropped, also when the drill is aborted.
struct FrozenProcess<'a> {
    injector: &'a FaultInjector<'a>,
    target: Target,
    pid: u32,
}

impl Drop for FrozenProcess<'_> {
    fn drop(&mut self) {
        // A graceful stop meanwhile has continued the process; its id may belong to another one.
        if self.injector.pid(self.target).is_ok_and(|pid| pid == self.pid) {
            let _ = send(self.pid, Signal::CONT);
        }
    }
}
