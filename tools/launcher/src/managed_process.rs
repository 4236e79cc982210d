//! One supervised process: a task starts it, restarts it by the restart rule when it dies, and stops it.
//!
//! The desired and the present state are watch channels, so that setting the same state twice has no effect and no
//! change is missed.

use std::{convert::Infallible, process::ExitStatus, time::Duration};

use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep_until, timeout, timeout_at},
};

use crate::{
    process::{Process, ProcessSpec, Signal},
    ready::Ready,
    restart::{Backoff, RestartRule},
};

/// How long a stop may take beyond the grace of the process, for the kill and the reaping.
pub(crate) const STOP_SLACK: Duration = Duration::from_secs(2);

/// The process specification and the readiness check of one replica.
#[derive(Clone, Debug)]
pub struct ReplicaSpec {
    /// What to run.
    pub spec: ProcessSpec,
    /// How its readiness is checked.
    pub ready: Ready,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DesiredState {
    Running,
    /// It stays down until the desired state changes.
    Stopped,
    /// It ends by this deadline and is not restarted.
    Gone(Instant),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessState {
    pub(crate) pid: Option<u32>,
    /// Its admin address once it has written it, since its last start.
    pub(crate) admin: Option<String>,
    /// Whether it has been ready since its last start.
    pub(crate) ready: bool,
    /// Whether it is down because [`DesiredState::Stopped`] is set.
    pub(crate) stopped: bool,
    /// Whether it has ended and will not be restarted.
    pub(crate) gone: bool,
    /// How often it ended without a stop.
    pub(crate) deaths: u64,
    /// The exit code of its last death; `None` when a signal killed it.
    pub(crate) last_exit: Option<i32>,
}

/// A process with the task that supervises it. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct ManagedProcess {
    pub(crate) name: String,
    pub(crate) grace: Duration,
    desired: watch::Sender<DesiredState>,
    state: watch::Receiver<ProcessState>,
    task: JoinHandle<()>,
}

impl ManagedProcess {
    pub(crate) fn start(replica_spec: ReplicaSpec, rule: RestartRule, client: reqwest::Client) -> Self {
        let (desired, desired_receiver) = watch::channel(DesiredState::Running);
        let (state_sender, state) = watch::channel(ProcessState::default());
        let (name, grace) = (replica_spec.spec.name.clone(), replica_spec.spec.grace);
        let monitor = Monitor {
            replica_spec,
            client,
            desired: desired_receiver,
            state: state_sender,
            backoff: Backoff::new(rule),
            rule,
        };
        Self { name, grace, desired, state, task: tokio::spawn(monitor.run()) }
    }

    pub(crate) fn state(&self) -> ProcessState {
        self.state.borrow().clone()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.desired.borrow() == DesiredState::Stopped
    }

    /// Sets the desired state. `Gone` is final; only its deadline can become earlier.
    pub(crate) fn set_desired(&self, desired: DesiredState) {
        self.desired.send_if_modified(|current| {
            let changes = match (&current, desired) {
                (DesiredState::Gone(until), DesiredState::Gone(sooner)) => sooner < *until,
                (DesiredState::Gone(_), _) => false,
                (current, desired) => **current != desired,
            };
            if changes {
                *current = desired;
            }
            changes
        });
    }

    /// Waits until the state satisfies the predicate. Returns false at the deadline.
    pub(crate) async fn wait_until(
        &self,
        deadline: Instant,
        test: impl FnMut(&ProcessState) -> bool,
    ) -> bool {
        let mut state = self.state.clone();
        matches!(timeout_at(deadline, state.wait_for(test)).await, Ok(Ok(_)))
    }

    /// Waits until it is ready or gone. Returns false at the deadline.
    pub(crate) async fn is_ready_by(&self, deadline: Instant) -> bool {
        self.wait_until(deadline, |state| state.ready || state.gone).await
    }

    /// Waits until it is down, after [`DesiredState::Stopped`] was set now. Returns false when it takes
    /// longer than its grace.
    pub(crate) async fn is_down(&self) -> bool {
        let deadline = Instant::now() + self.grace + STOP_SLACK;
        self.wait_until(deadline, |state| state.stopped || state.gone).await
    }
}

impl Drop for ManagedProcess {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Monitor {
    replica_spec: ReplicaSpec,
    client: reqwest::Client,
    desired: watch::Receiver<DesiredState>,
    state: watch::Sender<ProcessState>,
    backoff: Backoff,
    rule: RestartRule,
}

enum End {
    Died(Option<ExitStatus>),
    Stopped,
}

impl Monitor {
    async fn run(mut self) {
        loop {
            let desired = *self.desired.borrow_and_update();
            match desired {
                DesiredState::Gone(_) => break,
                DesiredState::Stopped => {
                    self.backoff = Backoff::new(self.rule);
                    self.state.send_modify(|state| state.stopped = true);
                    if self.desired.changed().await.is_err() {
                        break;
                    }
                    self.state.send_modify(|state| state.stopped = false);
                }
                DesiredState::Running => self.run_once().await,
            }
        }
        self.state.send_modify(|state| state.gone = true);
    }

    /// Runs the process once and, when it ended by itself, waits as the restart rule says.
    async fn run_once(&mut self) {
        let name = self.replica_spec.spec.name.clone();
        let born = Instant::now();
        self.replica_spec.ready.forget();
        let end = match Process::spawn(&self.replica_spec.spec) {
            Ok(process) => {
                tracing::info!(name, pid = process.pid(), "started");
                self.supervise(&process).await
            }
            Err(error) => {
                tracing::warn!(name, %error, "could not be started");
                End::Died(None)
            }
        };
        self.replica_spec.ready.forget();
        let End::Died(status) = end else {
            tracing::info!(name, "stopped");
            self.state.send_modify(clear_run);
            return;
        };
        let wait = self.backoff.after(born.elapsed());
        tracing::warn!(name, ?status, ?wait, "died");
        self.state.send_modify(|state| {
            clear_run(state);
            state.deaths += 1;
            state.last_exit = status.and_then(|status| status.code());
        });
        let mut desired = self.desired.clone();
        // Ends early when the desired state is no longer `Running`.
        let _ = timeout(wait, until_unwanted(&mut desired)).await;
    }

    async fn supervise(&self, process: &Process) -> End {
        self.state.send_modify(|state| state.pid = Some(process.pid()));
        let mut desired = self.desired.clone();
        tokio::select! {
            status = process.wait() => End::Died(status.ok()),
            never = self.become_ready() => match never {},
            () = until_unwanted(&mut desired) => {
                self.stop(process).await;
                End::Stopped
            }
        }
    }

    async fn become_ready(&self) -> Infallible {
        let set_admin = |admin| self.state.send_modify(|state| state.admin = Some(admin));
        self.replica_spec.ready.wait(&self.client, set_admin).await;
        self.state.send_modify(|state| state.ready = true);
        tracing::info!(name = self.replica_spec.spec.name, "ready");
        std::future::pending().await
    }

    /// Stops the process within its grace, or by the deadline of `Gone` when that is sooner, also when it is
    /// set during the stop. The stop signal is sent once, because many programs abort at a second one.
    async fn stop(&self, process: &Process) {
        let own_end = Instant::now() + self.replica_spec.spec.grace;
        let mut desired = self.desired.clone();
        // An error means that it has just ended by itself, which the wait below sees.
        let _ =
            process.signal(self.replica_spec.spec.stop_signal).and_then(|()| process.signal(Signal::CONT));
        loop {
            let end = match *desired.borrow_and_update() {
                DesiredState::Gone(until) => own_end.min(until),
                DesiredState::Stopped | DesiredState::Running => own_end,
            };
            tokio::select! {
                _ = process.wait() => return,
                () = sleep_until(end) => break,
                Ok(()) = desired.changed() => {}
            }
        }
        process.kill_group();
        if let Err(error) = process.wait().await {
            tracing::warn!(name = self.replica_spec.spec.name, %error, "could not be stopped");
        }
    }
}

fn clear_run(state: &mut ProcessState) {
    state.pid = None;
    state.admin = None;
    state.ready = false;
}

/// Waits until the desired state is no longer `Running`, or its sender is dropped.
async fn until_unwanted(desired: &mut watch::Receiver<DesiredState>) {
    let _ = desired.wait_for(|desired| *desired != DesiredState::Running).await;
}
