//! The servers that the services need, PostgreSQL and NATS: private ones below the home, or running ones that
//! were named.

use std::{io, os::unix::fs::OpenOptionsExt as _, path::PathBuf, time::Duration};

use mesh_launcher::{
    Ready, ReplicaSpec,
    bus::{Bus, BusCredentials},
    database::Database,
    home::Home,
    process::ProcessSpec,
    servers::{
        Durability, Nats, NatsSettings, Postgres, PostgresPrograms, ServerError, find_or_install_nats,
        find_or_install_postgres,
    },
    supervisor::{Group, NotReady, Supervisor, Tier},
};
use mesh_problem::error_chain;
use mesh_store::{error::StoreError, roles};
use tokio::{io::AsyncReadExt as _, net::TcpStream, time::timeout};

use crate::{
    failure::Failure,
    processes::{NATS, POSTGRES},
    terminal::print_line,
};

/// Timeout of a server's start, long because it may recover after a crash.
const SERVER_PATIENCE: Duration = Duration::from_secs(60);
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// The programs of the private servers; `None` for a server that runs already.
pub struct Programs {
    /// Those of the database server.
    pub postgres: Option<PostgresPrograms>,
    /// The bus server.
    pub nats: Option<PathBuf>,
}

/// Finds or installs the programs, one after the other because a package manager locks its database.
pub async fn programs(home: &Home, postgres: bool, nats: bool) -> Result<Programs, Failure> {
    let log = home.log("install", 0);
    let postgres = match postgres {
        true => Some(find_or_install_postgres(&log, &print_line).await.map_err(failure)?),
        false => None,
    };
    let nats = match nats {
        true => Some(find_or_install_nats(&log, &print_line).await.map_err(failure)?),
        false => None,
    };
    Ok(Programs { postgres, nats })
}

/// The failure of the command line for an error of a server.
pub(crate) fn failure(error: ServerError) -> Failure {
    match error {
        ServerError::Missing(_) => Failure::missing(error.to_string()),
        ServerError::OtherVersion { .. } => Failure::missing(error.to_string()),
        other => Failure::failed(error_chain(&other)),
    }
}

/// Starts a private database server. Returns its addresses once it answers and its users exist.
pub async fn start_postgres(
    home: &Home,
    supervisor: &Supervisor,
    programs: &PostgresPrograms,
    env: &[(String, String)],
) -> Result<Database, Failure> {
    let log = home.log(POSTGRES, 0);
    let server =
        Postgres::prepare(programs, &home.postgres(), &log, Durability::Durable).await.map_err(failure)?;
    let (database, spec) = (server.database(&roles::USERS).map_err(failure)?, server.spec());
    let ready = Ready::probe(move || {
        let server = server.clone();
        async move { server.ready(Duration::from_secs(1)).await.is_ok() }
    });
    keep(supervisor, POSTGRES, spec, ready, env)?;
    serving(home, supervisor, POSTGRES).await?;
    let known = roles::create_logins(database.url(), database.passwords()).await;
    known.map_err(|error| Failure::failed(error_chain(&error)))?;
    Ok(database)
}

/// Starts a private bus server for meshes whose subjects begin with `prefix`. Returns its address once it
/// answers.
pub async fn start_nats(
    home: &Home,
    supervisor: &Supervisor,
    program: &std::path::Path,
    prefix: &str,
    env: &[(String, String)],
) -> Result<Bus, Failure> {
    let settings = NatsSettings::of(prefix);
    let server =
        Nats::prepare(program, &home.nats(), &home.log(NATS, 0), &settings).await.map_err(failure)?;
    let bus = server.bus();
    let spec = server.spec();
    let ready = Ready::probe(move || {
        let server = server.clone();
        async move { server.ready(Duration::from_secs(1)).await.is_ok() }
    });
    keep(supervisor, NATS, spec, ready, env)?;
    serving(home, supervisor, NATS).await?;
    Ok(bus)
}

fn keep(
    supervisor: &Supervisor,
    name: &str,
    mut spec: ProcessSpec,
    ready: Ready,
    env: &[(String, String)],
) -> Result<(), Failure> {
    spec.name = format!("{name}-0");
    spec.env.extend_from_slice(env);
    let replica_spec = ReplicaSpec { spec, ready };
    let group = Group {
        name: name.to_owned(),
        tier: Tier::Server,
        scalable: false,
        replica_spec: Box::new(move |_, _| replica_spec.clone()),
    };
    supervisor.add(group, 1).map_err(|error| Failure::failed(error.to_string()))
}

async fn serving(home: &Home, supervisor: &Supervisor, name: &str) -> Result<(), Failure> {
    supervisor.ready(&[name], SERVER_PATIENCE).await.map_err(|error| not_ready(home, &error))
}

/// The failure that names the process that is not ready, with the last line of its log.
pub fn not_ready(home: &Home, error: &NotReady) -> Failure {
    let Some(process) = error.process() else { return Failure::failed(error.to_string()) };
    let log = home.logs().join(format!("{process}.log"));
    let last = std::fs::read_to_string(&log)
        .ok()
        .and_then(|text| text.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned))
        .map(|line| format!(", which ends with: {}", line.chars().take(400).collect::<String>()))
        .unwrap_or_default();
    let text = format!("{error}; look at its log {}{last}", log.display());
    match error {
        NotReady::Misconfigured(_) => Failure::configuration(text),
        _ => Failure::failed(text),
    }
}

/// Makes sure that a named database server answers.
pub(crate) async fn reach_postgres(url: &str) -> Result<(), Failure> {
    let cause = match timeout(ANSWER_PATIENCE, mesh_store::reach(url)).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(StoreError::Url { source })) => {
            let error = error_chain(&source);
            return Err(Failure::configuration(format!(
                "the database address cannot be read ({error}); write it as postgres://user:password@host:port/database"
            )));
        }
        Ok(Err(error)) => error_chain(&error),
        Err(_) => "no answer".to_owned(),
    };
    Err(Failure::missing(format!(
        "the database given with --postgres cannot be reached ({cause}); start it, or leave the option out for a private one"
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

/// Makes sure that a named bus server answers. A password in its address goes into a file, so that no listing
/// of processes shows it.
pub(super) async fn reach_nats(home: &Home, url: &str) -> Result<Bus, Failure> {
    let (scheme, user, address) = parts_of_bus(url);
    let host = address.trim_end_matches('/');
    let with_port = if host.rsplit(']').next().is_some_and(|end| end.contains(':')) {
        host.to_owned()
    } else {
        format!("{host}:4222")
    };
    let greeting = async {
        let mut stream = TcpStream::connect(&with_port).await?;
        let mut greeting = [0; 5];
        stream.read_exact(&mut greeting).await?;
        if &greeting == b"INFO " { Ok(()) } else { Err(io::Error::other("something else listens there")) }
    };
    let cause = match timeout(ANSWER_PATIENCE, greeting).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("no answer".to_owned()),
    };
    if let Some(cause) = cause {
        return Err(Failure::missing(format!(
            "the bus given with --nats cannot be reached ({cause}); start it, or leave the option out for a private one"
        )));
    }
    let credentials = user.map(|user| keep_credentials(home, user)).transpose()?;
    let credentials = credentials.map(BusCredentials::Shared);
    Ok(Bus { url: format!("{scheme}://{address}"), credentials, tls_ca: None })
}

fn keep_credentials(home: &Home, user: &str) -> Result<PathBuf, Failure> {
    let file = home.run().join("bus-credentials");
    let write = || {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut open = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
        io::Write::write_all(&mut open, format!("{user}\n").as_bytes())
    };
    write().map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))?;
    Ok(file)
}
