//! Supervises the processes of one mesh: starts, restarts, stops and scales them; shuts down in tier order.
//!
//! Each process has its own task. This file has the table of the running processes, never locked across an await.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};

use crate::{
    control::protocol::{Answer, Request, Restarting, Row},
    managed_process::{DesiredState, ManagedProcess, ProcessState, ReplicaSpec, STOP_SLACK},
    ready,
    restart::RestartRule,
    services::configures_services,
};

/// How long a process may take to be ready before a request fails.
pub const READY_DEADLINE: Duration = Duration::from_secs(30);
/// How long `start` waits for readiness; a process that takes longer starts in the background.
const START_WAIT: Duration = Duration::from_secs(10);

/// The order of a shutdown; a smaller tier stops first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Takes requests from outside.
    Front,
    /// The other services.
    Service,
    /// The consensus node.
    Node,
    /// The application of a CometBFT node.
    Application,
    /// PostgreSQL and nats-server.
    Server,
}

/// The deadline of each tier, counted from the beginning of a shutdown. A front that takes long to finish an
/// answer leaves less time to the tiers behind it, which have no requests left by then.
const SHUTDOWN_PLAN: [(Tier, Duration); 5] = [
    (Tier::Front, Duration::from_millis(10_300)),
    (Tier::Service, Duration::from_millis(11_800)),
    (Tier::Node, Duration::from_millis(12_300)),
    (Tier::Application, Duration::from_millis(12_500)),
    (Tier::Server, Duration::from_millis(13_800)),
];

/// Makes the specification of a replica (first argument) in a generation (second). Two generations of a
/// replica run at the same time during a rolling restart and must not share files.
pub type MakeReplicaSpec = Box<dyn Fn(u32, u64) -> ReplicaSpec + Send + Sync>;

/// Processes of one name.
pub struct Group {
    /// The name.
    pub name: String,
    /// Its place in the order of a shutdown.
    pub tier: Tier,
    /// Whether there may be any number of replicas, and a successor before its predecessor has ended.
    pub scalable: bool,
    /// Makes the specification of each replica.
    pub replica_spec: MakeReplicaSpec,
}

impl Group {
    /// A group of one process.
    pub fn single(name: &str, tier: Tier, replica_spec: ReplicaSpec) -> Self {
        let name = name.to_owned();
        Self { name, tier, scalable: false, replica_spec: Box::new(move |_, _| replica_spec.clone()) }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("name", &self.name).field("tier", &self.tier).finish_non_exhaustive()
    }
}

/// Why a group did not become ready.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// A process ends with exit code 64, wrong configuration; starting it again would not help.
    #[error("{0} refuses its configuration")]
    Misconfigured(String),
    /// It died five times before it was ready.
    #[error("{0} keeps dying before it is ready")]
    Dying(String),
    /// The deadline has passed.
    #[error("{0} did not become ready within {1:?}")]
    Late(String, Duration),
    /// The mesh is being stopped.
    #[error("the mesh is being stopped")]
    Closing,
}

impl NotReady {
    /// The process that is not ready.
    pub fn process(&self) -> Option<&str> {
        match self {
            Self::Misconfigured(name) | Self::Dying(name) | Self::Late(name, _) => Some(name),
            Self::Closing => None,
        }
    }
}

/// Exit code of a process whose configuration is wrong.
const MISCONFIGURED: i32 = 64;
/// The number of deaths after which readiness is given up: some six seconds by the restart rule.
const TOO_MANY_DEATHS: u64 = 5;

/// The processes of one mesh. Clones share them; dropping the last clone kills all.
#[derive(Clone, Debug)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    rule: RestartRule,
    client: reqwest::Client,
    shutdown_asked: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct Table {
    groups: Vec<ActiveGroup>,
    closing: bool,
}

#[derive(Debug)]
pub(crate) struct ActiveGroup {
    pub(crate) definition: Arc<Group>,
    pub(crate) members: Vec<Member>,
    /// Serialises changes of the members.
    pub(crate) change_lock: Arc<AsyncMutex<()>>,
    generations: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) replica: u32,
    pub(crate) role: Role,
    pub(crate) process: Arc<ManagedProcess>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The current replica of its number.
    Serving,
    /// Becomes the current replica once it is ready.
    Successor,
    /// Was the current replica and is stopping.
    Leaving,
}

impl ActiveGroup {
    /// The members with the role [`Role::Serving`], by replica number.
    pub(crate) fn serving(&self) -> Vec<Member> {
        let mut members: Vec<Member> =
            self.members.iter().filter(|member| member.role == Role::Serving).cloned().collect();
        members.sort_by_key(|member| member.replica);
        members
    }
}

impl Supervisor {
    /// A supervisor without processes.
    ///
    /// # Errors
    /// The client for readiness checks cannot be made.
    pub fn new(rule: RestartRule) -> Result<Self, reqwest::Error> {
        let table = Mutex::new(Table::default());
        let shutdown_asked = tokio::sync::Notify::new();
        Ok(Self { shared: Arc::new(Shared { table, rule, client: ready::local_client()?, shutdown_asked }) })
    }

    /// Starts the replicas of a group and supervises them from now on.
    ///
    /// # Errors
    /// The mesh is being stopped.
    pub fn add(&self, group: Group, replicas: u32) -> Result<(), NotReady> {
        let name = group.name.clone();
        let group = ActiveGroup {
            definition: Arc::new(group),
            members: Vec::new(),
            change_lock: Arc::new(AsyncMutex::new(())),
            generations: 0,
        };
        self.table().groups.push(group);
        for replica in 0..replicas {
            self.start_member(&name, replica, Role::Serving)?;
        }
        Ok(())
    }

    /// Waits until every replica of the groups is ready; `limit` bounds the wait.
    ///
    /// # Errors
    /// One refuses its configuration, keeps dying or is late, or the mesh is being stopped.
    pub async fn ready(&self, names: &[&str], limit: Duration) -> Result<(), NotReady> {
        let deadline = Instant::now() + limit;
        let members: Vec<Member> = {
            let table = self.table();
            let groups = table.groups.iter().filter(|group| names.contains(&group.definition.name.as_str()));
            groups.flat_map(ActiveGroup::serving).collect()
        };
        for member in members {
            let decided = |state: &ProcessState| {
                let has_given_up = state.last_exit == Some(MISCONFIGURED) || state.deaths >= TOO_MANY_DEATHS;
                state.ready || state.gone || has_given_up
            };
            let in_time = member.process.wait_until(deadline, decided).await;
            let state = member.process.state();
            let name = member.process.name.clone();
            if state.gone || self.table().closing {
                return Err(NotReady::Closing);
            }
            if state.ready {
                continue;
            }
            return Err(match state.last_exit {
                Some(MISCONFIGURED) => NotReady::Misconfigured(name),
                _ if in_time => NotReady::Dying(name),
                _ => NotReady::Late(name, limit),
            });
        }
        Ok(())
    }

    /// Lists the processes that have a pid, in the order in which they were added.
    pub fn rows(&self) -> Vec<Row> {
        let row = |(service, replica, ProcessState { pid, admin, .. })| {
            pid.map(|pid| Row { service, replica, pid, admin })
        };
        self.states().into_iter().filter_map(row).collect()
    }

    /// Lists the processes that have ended by themselves and wait for their next start.
    fn restarting(&self) -> Vec<Restarting> {
        let waits = |state: &ProcessState| state.pid.is_none() && state.deaths > 0 && !state.stopped;
        let states = self.states().into_iter().filter(|(_, _, state)| waits(state));
        states
            .map(|(service, replica, state)| Restarting { service, replica, deaths: state.deaths })
            .collect()
    }

    /// Name, replica number and state of each serving process.
    fn states(&self) -> Vec<(String, u32, ProcessState)> {
        let mut states = Vec::new();
        for group in &self.table().groups {
            for Member { replica, process, .. } in group.serving() {
                states.push((group.definition.name.clone(), replica, process.state()));
            }
        }
        states
    }

    /// Name, number of ready replicas and number of replicas of each group.
    pub fn standing(&self) -> Vec<(String, usize, usize)> {
        let standing = |group: &ActiveGroup| {
            let members = group.serving();
            let ready = members.iter().filter(|member| member.process.state().ready).count();
            (group.definition.name.clone(), ready, members.len())
        };
        self.table().groups.iter().map(standing).collect()
    }

    /// Handles a request of a command line.
    pub async fn answer(&self, request: Request) -> Answer {
        let done = match request {
            Request::Ps => return Answer::Rows { rows: self.rows(), restarting: self.restarting() },
            Request::Environment { name } => match self.environment(&name) {
                Ok(variables) => return Answer::Environment { variables },
                Err(reason) => Err(reason),
            },
            Request::Stop { name, replica } => self.stop_replicas(&name, replica).await,
            Request::Start { name, replica } => self.start_replicas(&name, replica).await,
            Request::Restart { name } => self.restart(&name).await,
            Request::Scale { name, replicas } => self.scale(&name, replicas).await,
            Request::Shutdown => {
                self.shared.shutdown_asked.notify_one();
                Ok(None)
            }
        };
        match done {
            Ok(note) => Answer::Done { note },
            Err(reason) => Answer::Refused { reason },
        }
    }

    /// Waits until a command line requests a shutdown.
    pub async fn shutdown_asked(&self) {
        self.shared.shutdown_asked.notified().await;
    }

    /// The variables that configure the processes of this name, see [`configures_services`].
    fn environment(&self, name: &str) -> Result<Vec<(String, String)>, String> {
        let spec = self.with_group(name, |group| (group.definition.replica_spec)(0, 0).spec)?;
        let inherited = std::env::vars_os()
            .filter(|_| !spec.clear_env)
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Ok(inherited.chain(spec.env).filter(|(name, _)| configures_services(name)).collect())
    }

    /// Stops processes until [`Self::start_replicas`].
    async fn stop_replicas(&self, name: &str, replica: Option<u32>) -> Result<Option<String>, String> {
        let members = self.named(name, replica)?;
        if members.iter().all(|member| member.process.is_stopped()) {
            return Ok(Some(format!("{name} is held down already")));
        }
        members.iter().for_each(|member| member.process.set_desired(DesiredState::Stopped));
        for member in &members {
            if !member.process.is_down().await {
                return Err(format!("{} did not stop; see its log", member.process.name));
            }
        }
        Ok(None)
    }

    /// Starts processes that [`Self::stop_replicas`] stopped.
    async fn start_replicas(&self, name: &str, replica: Option<u32>) -> Result<Option<String>, String> {
        let members = self.named(name, replica)?;
        if !members.iter().any(|member| member.process.is_stopped()) {
            return Ok(Some(format!("{name} was not held down")));
        }
        members.iter().for_each(|member| member.process.set_desired(DesiredState::Running));
        let deadline = Instant::now() + START_WAIT;
        for member in &members {
            if !member.process.is_ready_by(deadline).await {
                return Ok(Some(format!("{} is started and not ready yet", member.process.name)));
            }
        }
        Ok(None)
    }

    /// Stops all processes in tier order, within some 14 seconds, and returns when all have ended.
    pub async fn shutdown(&self) {
        let begun = Instant::now();
        self.table().closing = true;
        for (tier, until) in SHUTDOWN_PLAN {
            let members = self.of_tier(tier);
            members.iter().for_each(|member| member.process.set_desired(DesiredState::Gone(begun + until)));
            let last = begun + until + STOP_SLACK;
            join_all(members.iter().map(|member| member.process.wait_until(last, |state| state.gone))).await;
        }
        self.table().groups.clear();
    }

    /// Starts one process of a group, unless the mesh is being stopped.
    pub(crate) fn start_member(&self, name: &str, replica: u32, role: Role) -> Result<Member, NotReady> {
        let mut table = self.table();
        if table.closing {
            return Err(NotReady::Closing);
        }
        let group = table.groups.iter_mut().find(|group| group.definition.name == name);
        let group = group.ok_or(NotReady::Closing)?;
        let has_sibling =
            role == Role::Successor || group.members.iter().any(|other| other.replica == replica);
        group.generations += u64::from(has_sibling);
        let generation = if has_sibling { group.generations } else { 0 };
        let replica_spec = (group.definition.replica_spec)(replica, generation);
        let process = ManagedProcess::start(replica_spec, self.shared.rule, self.shared.client.clone());
        let member = Member { replica, role, process: Arc::new(process) };
        group.members.push(member.clone());
        Ok(member)
    }

    /// Calls a function with a group under the table's lock; it must be short.
    pub(crate) fn with_group<T>(
        &self,
        name: &str,
        act: impl FnOnce(&mut ActiveGroup) -> T,
    ) -> Result<T, String> {
        let mut table = self.table();
        if table.closing {
            return Err("the mesh is being stopped; start it again with `mesh up`".to_owned());
        }
        let group = table.groups.iter_mut().find(|group| group.definition.name == name);
        group.map(act).ok_or_else(|| format!("this mesh runs no {name}; `mesh ps` lists what it runs"))
    }

    /// The serving members of a group, or the one of this replica number; at least one.
    pub(crate) fn named(&self, name: &str, replica: Option<u32>) -> Result<Vec<Member>, String> {
        let mut members = self.with_group(name, |group| group.serving())?;
        members.retain(|member| replica.is_none_or(|replica| member.replica == replica));
        match (members.is_empty(), replica) {
            (false, _) => Ok(members),
            (true, Some(replica)) => {
                Err(format!("{name} has no replica {replica}; `mesh ps` lists those that run"))
            }
            (true, None) => Err(format!("{name} has no replicas; add one with `mesh scale {name}=1`")),
        }
    }

    fn of_tier(&self, tier: Tier) -> Vec<Member> {
        let table = self.table();
        let groups = table.groups.iter().filter(|group| group.definition.tier == tier);
        groups.flat_map(|group| group.members.clone()).collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock()
    }
}
