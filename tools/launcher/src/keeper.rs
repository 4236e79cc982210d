//! One process kept alive: started, started again by the restart rule when it dies, held down, released,
//! ended.
//!
//! Comes in: a recipe, and what is wanted of the process. Goes out: what is the case. Both are watched
//! values, so that asking twice for the same thing is asking once, and nobody misses an answer.

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

/// How one process is made and recognised.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// What to run.
    pub spec: ProcessSpec,
    /// How one sees that it serves.
    pub ready: Ready,
}

/// What is wanted of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// That it runs.
    Running,
    /// That it stays down until released.
    Held,
    /// That it ends for good, by this moment.
    Gone(Instant),
}

/// What is the case with a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Condition {
    /// Its process id while it lives.
    pub(crate) pid: Option<u32>,
    /// Its admin base once it has said it, in this life.
    pub(crate) admin: Option<String>,
    /// Whether it has served in this life.
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

/// The owner of one process. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Keeper {
    name: String,
    grace: Duration,
    wanted: watch::Sender<Wanted>,
    condition: watch::Receiver<Condition>,
    task: JoinHandle<()>,
}

impl Keeper {
    /// Starts the process and keeps it.
    pub(crate) fn start(recipe: Recipe, rule: RestartRule, client: reqwest::Client) -> Self {
        let (wanted, watch_wanted) = watch::channel(Wanted::Running);
        let (tell, condition) = watch::channel(Condition::default());
        let (name, grace) = (recipe.spec.name.clone(), recipe.spec.grace);
        let keeping =
            Keeping { recipe, client, wanted: watch_wanted, tell, backoff: Backoff::new(rule), rule };
        Self { name, grace, wanted, condition, task: tokio::spawn(keeping.run()) }
    }

    /// How long the process may take to stop.
    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    /// The name of the process.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What is the case now.
    pub(crate) fn condition(&self) -> Condition {
        self.condition.borrow().clone()
    }

    /// Whether the process is wanted down for now.
    pub(crate) fn is_held(&self) -> bool {
        *self.wanted.borrow() == Wanted::Held
    }

    /// Says what is wanted. What is to be gone stays so; only its moment may come nearer.
    pub(crate) fn want(&self, wanted: Wanted) {
        self.wanted.send_if_modified(|current| {
            let changes = match (&current, wanted) {
                (Wanted::Gone(until), Wanted::Gone(sooner)) => sooner < *until,
                (Wanted::Gone(_), _) => false,
                (current, wanted) => **current != wanted,
            };
            if changes {
                *current = wanted;
            }
            changes
        });
    }

    /// Waits until the condition is as asked, or says after the deadline that it is not.
    pub(crate) async fn until(&self, deadline: Instant, test: impl FnMut(&Condition) -> bool) -> bool {
        let mut condition = self.condition.clone();
        matches!(timeout_at(deadline, condition.wait_for(test)).await, Ok(Ok(_)))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The task of a keeper.
struct Keeping {
    recipe: Recipe,
    client: reqwest::Client,
    wanted: watch::Receiver<Wanted>,
    tell: watch::Sender<Condition>,
    backoff: Backoff,
    rule: RestartRule,
}

/// How a life ended.
enum End {
    Died(Option<ExitStatus>),
    Stopped,
}

impl Keeping {
    async fn run(mut self) {
        loop {
            let wanted = *self.wanted.borrow_and_update();
            match wanted {
                Wanted::Gone(_) => break,
                Wanted::Held => {
                    self.backoff = Backoff::new(self.rule);
                    self.tell.send_modify(|condition| condition.held = true);
                    if self.wanted.changed().await.is_err() {
                        break;
                    }
                    self.tell.send_modify(|condition| condition.held = false);
                }
                Wanted::Running => self.live_once().await,
            }
        }
        self.tell.send_modify(|condition| condition.gone = true);
    }

    /// One life and, when it ended by itself, the wait after it.
    async fn live_once(&mut self) {
        let name = self.recipe.spec.name.clone();
        let born = Instant::now();
        self.recipe.ready.forget();
        let end = match Process::spawn(&self.recipe.spec) {
            Ok(process) => {
                tracing::info!(name, pid = process.pid(), "started");
                self.live(&process).await
            }
            Err(error) => {
                tracing::warn!(name, %error, "could not be started");
                End::Died(None)
            }
        };
        self.recipe.ready.forget();
        let End::Died(status) = end else {
            tracing::info!(name, "stopped");
            self.tell.send_modify(end_life);
            return;
        };
        let wait = self.backoff.after(born.elapsed());
        tracing::warn!(name, ?status, ?wait, "died");
        self.tell.send_modify(|condition| {
            end_life(condition);
            condition.deaths += 1;
            condition.last_exit = status.and_then(|status| status.code());
        });
        let mut wanted = self.wanted.clone();
        // Woken early when the process is not wanted any more.
        let _ = timeout(wait, wanted_down(&mut wanted)).await;
    }

    async fn live(&self, process: &Process) -> End {
        self.tell.send_modify(|condition| condition.pid = Some(process.pid()));
        let mut wanted = self.wanted.clone();
        tokio::select! {
            status = process.wait() => End::Died(status.ok()),
            never = self.become_ready() => match never {},
            () = wanted_down(&mut wanted) => {
                self.stop(process).await;
                End::Stopped
            }
        }
    }

    async fn become_ready(&self) -> Infallible {
        let tell_admin = |admin| self.tell.send_modify(|condition| condition.admin = Some(admin));
        self.recipe.ready.wait(&self.client, tell_admin).await;
        self.tell.send_modify(|condition| condition.ready = true);
        tracing::info!(name = self.recipe.spec.name, "ready");
        std::future::pending().await
    }

    /// Stops the process within its own grace, or sooner when it has to be gone sooner; a more urgent wish
    /// may still come while it stops. The stop signal is sent once: to many programs a second one means
    /// haste.
    async fn stop(&self, process: &Process) {
        let own_end = Instant::now() + self.recipe.spec.grace;
        let mut wishes = self.wanted.clone();
        // It may be ending by itself just now; the wait tells.
        let _ = process.signal(self.recipe.spec.stop_signal).and_then(|()| process.signal(Signal::CONT));
        loop {
            let end = match *wishes.borrow_and_update() {
                Wanted::Gone(until) => own_end.min(until),
                Wanted::Held | Wanted::Running => own_end,
            };
            tokio::select! {
                _ = process.wait() => return,
                () = sleep_until(end) => break,
                Ok(()) = wishes.changed() => {}
            }
        }
        process.kill_group();
        if let Err(error) = process.wait().await {
            tracing::warn!(name = self.recipe.spec.name, %error, "could not be stopped");
        }
    }
}

fn end_life(condition: &mut Condition) {
    condition.pid = None;
    condition.admin = None;
    condition.ready = false;
}

/// Waits until the process is not wanted to run. An owner that is gone wants nothing.
async fn wanted_down(wanted: &mut watch::Receiver<Wanted>) {
    let _ = wanted.wait_for(|wanted| *wanted != Wanted::Running).await;
}
