//! One process that is kept running: started, restarted by the restart rule when it dies, held down,
//! released, ended.
//!
//! Comes in: what to run, and the desired state. Goes out: the present state. Both are watched values, so
//! that setting the same state twice has no effect and no change is missed.

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

/// What one replica runs, and how its readiness is seen.
#[derive(Clone, Debug)]
pub struct ReplicaSpec {
    /// What to run.
    pub spec: ProcessSpec,
    /// How one sees that it serves.
    pub ready: Ready,
}

/// The state that a process is to be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DesiredState {
    /// It runs.
    Running,
    /// It stays down until released.
    Held,
    /// It ends for good, by this moment.
    Gone(Instant),
}

/// The present state of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessState {
    /// Its process id while it lives.
    pub(crate) pid: Option<u32>,
    /// Its admin address once it has written it, since its last start.
    pub(crate) admin: Option<String>,
    /// Whether it has been ready since its last start.
    pub(crate) ready: bool,
    /// Whether it is held down, and down.
    pub(crate) held: bool,
    /// Whether it has ended for good.
    pub(crate) gone: bool,
    /// How often it died without being asked to.
    pub(crate) deaths: u64,
    /// With what exit code it last died, when it had one.
    pub(crate) last_exit: Option<i32>,
}

/// A process with the task that keeps it running. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct ManagedProcess {
    name: String,
    grace: Duration,
    desired: watch::Sender<DesiredState>,
    state: watch::Receiver<ProcessState>,
    task: JoinHandle<()>,
}

impl ManagedProcess {
    /// Starts the process and the task that keeps it running.
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

    /// How long the process may take to stop.
    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    /// The name of the process.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The present state.
    pub(crate) fn state(&self) -> ProcessState {
        self.state.borrow().clone()
    }

    /// Whether the process is to stay down until it is released.
    pub(crate) fn is_held(&self) -> bool {
        *self.desired.borrow() == DesiredState::Held
    }

    /// Sets the desired state. A process that is to end stays so; only the moment may come earlier.
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

    /// Waits until the state passes the test. Returns false when it does not by the deadline.
    pub(crate) async fn wait_until(
        &self,
        deadline: Instant,
        test: impl FnMut(&ProcessState) -> bool,
    ) -> bool {
        let mut state = self.state.clone();
        matches!(timeout_at(deadline, state.wait_for(test)).await, Ok(Ok(_)))
    }
}

impl Drop for ManagedProcess {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The task that keeps a process running.
struct Monitor {
    replica_spec: ReplicaSpec,
    client: reqwest::Client,
    desired: watch::Receiver<DesiredState>,
    state: watch::Sender<ProcessState>,
    backoff: Backoff,
    rule: RestartRule,
}

/// How a run ended.
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
                DesiredState::Held => {
                    self.backoff = Backoff::new(self.rule);
                    self.state.send_modify(|state| state.held = true);
                    if self.desired.changed().await.is_err() {
                        break;
                    }
                    self.state.send_modify(|state| state.held = false);
                }
                DesiredState::Running => self.run_once().await,
            }
        }
        self.state.send_modify(|state| state.gone = true);
    }

    /// One run of the process and, when it ended by itself, the wait after it.
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
        // Ends early when the process is no longer to run.
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

    /// Stops the process within its own grace, or sooner when it has to be gone sooner; a more urgent wish
    /// may still come while it stops. The stop signal is sent once: to many programs a second one means
    /// haste.
    async fn stop(&self, process: &Process) {
        let own_end = Instant::now() + self.replica_spec.spec.grace;
        let mut desired = self.desired.clone();
        // It may be ending by itself just now; the wait tells.
        let _ =
            process.signal(self.replica_spec.spec.stop_signal).and_then(|()| process.signal(Signal::CONT));
        loop {
            let end = match *desired.borrow_and_update() {
                DesiredState::Gone(until) => own_end.min(until),
                DesiredState::Held | DesiredState::Running => own_end,
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

/// Waits until the process is no longer to run, also because its owner is gone.
async fn until_unwanted(desired: &mut watch::Receiver<DesiredState>) {
    let _ = desired.wait_for(|desired| *desired != DesiredState::Running).await;
}
