//! The servers that the services need, PostgreSQL and NATS: private ones below the home, or running ones that
//! were named.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use async_nats::{ConnectError, ConnectErrorKind, ConnectOptions, ServerAddr};
use mesh_launcher::{
    Ready, ReplicaSpec, RestartRule,
    bus::{Bus, BusCredentials},
    database::Database,
    home::Home,
    local_client,
    servers::{
        Durability, Nats, NatsSettings, Postgres, PostgresPrograms, find_or_install_nats,
        find_or_install_postgres, nats_greeting, tail,
    },
    supervisor::{Group, NotReady, Supervisor, Tier},
    why_unready, write_private,
};
use mesh_loader::roles;
use mesh_problem::error_chain;
use mesh_store::error::StoreError;
use tokio::time::{sleep, timeout};

use crate::{
    failure::{Failure, cannot, failed},
    processes::{NATS, POSTGRES},
    terminal::print_line,
};

/// Time until the first line that says what is waited for, and between two of them.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);
/// Timeout of a server's start, long because it may recover after a crash.
const SERVER_PATIENCE: Duration = Duration::from_secs(30 * 60);
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
const PROBE_PATIENCE: Duration = Duration::from_secs(1);
/// Pause between two checks of whether the database server waits for its sessions.
const SHUTDOWN_LOOK_PAUSE: Duration = Duration::from_secs(1);

/// When this process began to start others.
static STARTED: LazyLock<SystemTime> = LazyLock::new(SystemTime::now);

/// The programs of the private servers; `None` for a server that runs already.
pub struct Programs {
    /// Those of the database server.
    pub postgres: Option<PostgresPrograms>,
    /// The bus server.
    pub nats: Option<PathBuf>,
}

/// Finds or installs the programs, in sequence because a package manager locks its database.
///
/// # Errors
/// A program is not on this machine and cannot be installed.
pub async fn programs(home: &Home, postgres: bool, nats: bool) -> Result<Programs, Failure> {
    LazyLock::force(&STARTED);
    let log = home.log("install", 0);
    let postgres = if postgres { Some(find_or_install_postgres(&log, &print_line).await?) } else { None };
    let nats = if nats { Some(find_or_install_nats(&log, &print_line).await?) } else { None };
    Ok(Programs { postgres, nats })
}

pub(crate) fn supervisor() -> Result<Supervisor, Failure> {
    LazyLock::force(&STARTED);
    Supervisor::new(RestartRule::default()).map_err(|error| cannot("watch processes", &error))
}

/// Starts a private database server. Returns its addresses once it answers and its users exist.
///
/// # Errors
/// Its data cannot be served, or it does not become ready.
pub async fn start_postgres(
    home: &Home,
    supervisor: &Supervisor,
    programs: &PostgresPrograms,
    env: &[(String, String)],
) -> Result<Database, Failure> {
    let log = home.log(POSTGRES, 0);
    let folder = home.postgres();
    let was_elsewhere = folder.is_symlink();
    let server = Postgres::prepare(programs, &folder, &log, Durability::Durable).await?;
    if let (false, Ok(elsewhere)) = (was_elsewhere, std::fs::read_link(&folder)) {
        let (folder, elsewhere) = (folder.display(), elsewhere.display());
        print_line(&format!(
            "the database is in {elsewhere}: PostgreSQL's system user cannot enter {folder}, which is a link to it"
        ));
    }
    let (database, spec) = (server.database(&roles::USERS)?, server.spec());
    let probed = server.clone();
    let ready = Ready::probe(move || {
        let server = probed.clone();
        async move { server.ready(PROBE_PATIENCE).await.is_ok() }
    });
    start(home, supervisor, POSTGRES, ReplicaSpec { spec, ready }, env).await?;
    tokio::spawn(async move {
        loop {
            sleep(SHUTDOWN_LOOK_PAUSE).await;
            server.hasten_shutdown();
        }
    });
    roles::create_logins(database.url(), database.passwords()).await?;
    Ok(database)
}

/// Starts a private bus server for meshes whose subjects begin with `prefix`. Returns its address once it
/// answers.
///
/// # Errors
/// Its folder cannot be written, or it does not become ready.
pub async fn start_nats(
    home: &Home,
    supervisor: &Supervisor,
    program: &Path,
    prefix: &str,
    env: &[(String, String)],
) -> Result<Bus, Failure> {
    let settings = NatsSettings::of(prefix);
    let server = Nats::prepare(program, &home.nats(), &home.log(NATS, 0), &settings).await?;
    let (bus, spec) = (server.bus(), server.spec());
    let ready = Ready::probe(move || {
        let server = server.clone();
        async move { server.ready(PROBE_PATIENCE).await.is_ok() }
    });
    start(home, supervisor, NATS, ReplicaSpec { spec, ready }, env).await?;
    Ok(bus)
}

async fn start(
    home: &Home,
    supervisor: &Supervisor,
    name: &str,
    mut replica: ReplicaSpec,
    env: &[(String, String)],
) -> Result<(), Failure> {
    replica.spec.name = format!("{name}-0");
    replica.spec.env.extend_from_slice(env);
    supervisor.add(Group::single(name, Tier::Server, replica), 1)?;
    timeout(SERVER_PATIENCE, until_ready(home, supervisor, &[name])).await.map_err(|_| {
        failed!("{name} did not become ready within {} minutes", SERVER_PATIENCE.as_secs() / 60)
    })?
}

/// Waits until every replica of the groups is ready, and says what it waits for: a database may recover after a crash, a
/// node catch up with its chain.
pub(super) async fn until_ready(home: &Home, supervisor: &Supervisor, names: &[&str]) -> Result<(), Failure> {
    let mut patience = FIRST_PATIENCE;
    loop {
        match supervisor.ready(names, std::mem::replace(&mut patience, PATIENCE)).await {
            Err(error @ NotReady::Late(..)) => {
                let process = error.process().unwrap_or_default();
                let why = reason(supervisor, process).await.map(|why| format!(": {why}")).unwrap_or_default();
                print_line(&format!("waiting for {process}{why}; {}", end_of_log(home, process)));
            }
            ready => return ready.map_err(|error| not_ready(home, &error)),
        }
    }
}

/// Why a process is not ready, if it says so.
async fn reason(supervisor: &Supervisor, process: &str) -> Option<String> {
    let row =
        supervisor.rows().into_iter().find(|row| format!("{}-{}", row.service, row.replica) == process)?;
    why_unready(&local_client().ok()?, &row.admin?, ANSWER_PATIENCE).await.ok()?
}

/// The failure that names the process that is not ready, with the last line of its log.
pub fn not_ready(home: &Home, error: &NotReady) -> Failure {
    let Some(process) = error.process() else { return Failure::failed(error.to_string()) };
    let text = format!("{error}; {}", end_of_log(home, process));
    match error {
        NotReady::Misconfigured(_) => Failure::configuration(text),
        _ => Failure::failed(text),
    }
}

/// Where the log of a process is, with its last line.
fn end_of_log(home: &Home, process: &str) -> String {
    let log = home.logs().join(format!("{process}.log"));
    // A log continues over runs; the last line of an earlier run names an earlier cause.
    let is_of_this_run = log.metadata().and_then(|log| log.modified()).is_ok_and(|at| at >= *STARTED);
    let end = if is_of_this_run { tail(&log, 4096) } else { String::new() };
    let last = end.lines().rfind(|line| !line.trim().is_empty());
    let last = last.map(|line| format!(", which ends with: {}", line.chars().take(400).collect::<String>()));
    let last = last.unwrap_or_default();
    format!("see its log {}{last}", log.display())
}

pub(crate) async fn reach_postgres(url: &str) -> Result<(), Failure> {
    let cause = match timeout(ANSWER_PATIENCE, mesh_store::connect(url, "mesh")).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error @ StoreError::Url { .. })) => return Err(error.into()),
        Ok(Err(error)) if error.is_wrong_address() => {
            return Err(Failure::configuration(format!(
                "the database given with --postgres rejects the connection ({}); correct user, password or database",
                error_chain(&error)
            )));
        }
        Ok(Err(error)) => error_chain(&error),
        Err(_) => "no answer".to_owned(),
    };
    Err(Failure::missing(format!(
        "the database given with --postgres cannot be reached ({cause}); start it, or correct the address"
    )))
}

/// The parts of a bus server's address: scheme, `user:password` if there is one, and the rest.
pub(crate) fn parts_of_bus(url: &str) -> (&str, Option<&str>, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    match rest.rsplit_once('@') {
        Some((user, address)) => (scheme, Some(user), address),
        None => (scheme, None, rest),
    }
}

/// Makes sure that one of the named bus servers answers. A password in an address goes into a file, so that no listing
/// of processes shows it.
pub(super) async fn reach_nats(home: &Home, urls: &str) -> Result<Bus, Failure> {
    mesh_bus::check_url(urls)
        .map_err(|why| Failure::configuration(format!("the address given with --nats: {why}")))?;
    let servers: Vec<_> = urls.split(',').map(|url| parts_of_bus(url.trim())).collect();
    let (mut reached, mut cause) = (None, String::new());
    for (scheme, _, address) in &servers {
        let greeting = async {
            let server: ServerAddr = address.parse()?;
            nats_greeting((server.host(), server.port())).await
        };
        match timeout(ANSWER_PATIENCE, greeting).await {
            Ok(Ok(())) => {
                reached = Some(format!("{scheme}://{address}"));
                break;
            }
            Ok(Err(error)) => cause = error.to_string(),
            Err(_) => "no answer".clone_into(&mut cause),
        }
    }
    let Some(reached) = reached else {
        return Err(Failure::missing(format!(
            "the bus given with --nats cannot be reached ({cause}); start it, or correct the address"
        )));
    };
    let mut credentials = None;
    if let Some(user) = servers.iter().find_map(|(_, user, _)| *user) {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        let options = ConnectOptions::with_user_and_password(name.to_owned(), password.to_owned());
        // Services wait for a bus that answers otherwise, and report it.
        if let Ok(Err(error)) = timeout(ANSWER_PATIENCE, options.connect(reached)).await
            && rejects_credentials(&error)
        {
            return Err(Failure::configuration(
                "the bus given with --nats rejects the credentials; correct user and password in its address",
            ));
        }
        let file = home.run().join("bus-credentials");
        write_private(&file, format!("{user}\n").as_bytes(), true)
            .map_err(|error| failed!("cannot write {}: {error}", file.display()))?;
        credentials = Some(BusCredentials::Shared(file));
    }
    let urls: Vec<String> =
        servers.iter().map(|(scheme, _, address)| format!("{scheme}://{address}")).collect();
    Ok(Bus { url: urls.join(","), credentials, tls_ca: None })
}

pub(crate) fn rejects_credentials(error: &ConnectError) -> bool {
    matches!(error.kind(), ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation)
}
