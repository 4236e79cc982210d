//! Checks of the servers that a mesh uses, those named or those of the running mesh: whether they answer,
//! accept the credentials and have the right version; the difference of their clocks; readiness of each
//! service.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use mesh_bus::Credentials;
use mesh_launcher::{
    control::{Restarting, Row},
    home::SavedState,
    local_client,
    servers::OLDEST_NATS,
    why_unready,
};
use mesh_loader::{LoadError, migrate::check_database};
use mesh_node_rpc::{NodeUrl, client_builder, describe};
use mesh_problem::error_chain;
use mesh_store::{error::StoreError, schema};
use reqwest::header::DATE;
use serde_json::Value;
use tokio::time::timeout;
use tokio_postgres::{Client, error::SqlState};

use super::{
    Running,
    finding::{Checked, Fault, Finding},
    machine::version,
};
use crate::{
    cli::DoctorArgs,
    up::backing::{parts_of_bus, rejects_credentials},
};

const WITHIN: Duration = Duration::from_secs(5);
/// Tolerated difference of two clocks, seconds.
const CLOCKS_DIFFER: f64 = 5.0;
/// What to do about a server that does not answer.
const NOT_THERE: &str = "start it, or correct its address";
/// Number of blocks by which the store may be behind its node without a warning.
const BEHIND: i64 = 50;

/// The chain's head in the store and at the node, and the servers' clocks.
#[derive(Default)]
struct Heads {
    store: Option<i64>,
    node: Option<i64>,
    /// Name of the server and the seconds its clock is ahead of this machine's.
    clocks: Vec<(&'static str, f64)>,
    /// Seconds by which the time of the newest stored block is ahead of this machine's clock.
    newest: Option<f64>,
}

/// Checks every server that was named or that the running mesh uses.
pub(super) async fn check_all(
    args: &DoctorArgs,
    running: &Running,
    saved: Option<&SavedState>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut heads = Heads::default();
    if let Some(url) = args.postgres.as_deref().or(running.variable("MESH_DATABASE_URL")) {
        match database(url).await {
            Err(fault) => findings.push(Finding::of("database", Err(fault))),
            Ok(client) => {
                findings.push(Finding::of("database", Ok("reachable, credentials accepted".to_owned())));
                findings.push(Finding::of("schema", schema(&client, &mut heads).await));
            }
        }
    } else if let Some(address) = saved.and_then(|saved| saved.database.as_ref()) {
        let says = format!("not checked: this home uses the database at {address}");
        let unchecked = Fault::warning(says, "give its address with --postgres to check it");
        findings.push(Finding::of("database", Err(unchecked)));
    }
    if let Some(url) = args.nats.as_deref().or(running.variable("MESH_BUS_URL")) {
        // Those of the running mesh are for its own bus.
        let file = |name| running.variable(name).filter(|_| args.nats.is_none()).map(PathBuf::from);
        let (credentials, ca) = (file("MESH_BUS_CREDENTIALS"), file("MESH_BUS_TLS_CA"));
        findings.push(Finding::of("bus", bus(url, credentials, ca).await));
    }
    if let Some(url) = args.node.as_deref().or(running.variable("MESH_NODE_URL")) {
        findings.push(Finding::of("node", node(url, &mut heads).await));
    }
    findings.extend(clock(&heads).map(|checked| Finding::of("clock", checked)));
    findings.extend(lag(&heads).map(|checked| Finding::of("lag", checked)));
    for row in &running.rows {
        if let Some(admin) = &row.admin {
            findings.push(Finding::of("service", service(row, admin).await));
        }
    }
    findings.extend(running.restarting.iter().map(|Restarting { service, replica, deaths }| {
        let name = format!("{service}-{replica}");
        let says = format!("{name} ended by itself and waits for restart {deaths}");
        Finding::of("service", Err(Fault::wrong(says, see_log(&name))))
    }));
    findings.extend(running.stopped.iter().map(|name| {
        let next = format!(
            "`mesh start {name}` if it was stopped, `mesh scale {name}=1` if it was scaled to 0; if it ended by itself, see logs/{name}-0.log in the home"
        );
        Finding::of("service", Err(Fault::wrong(format!("{name} has no running replica"), next)))
    }));
    findings
}

async fn database(url: &str) -> Result<Client, Fault> {
    match timeout(WITHIN, mesh_store::connect(url, "mesh doctor")).await {
        Ok(connected) => connected.map_err(|error| unreached(&error)),
        Err(_) => Err(Fault::wrong(
            "it does not answer",
            "start it, or correct its address; a firewall may drop the packets",
        )),
    }
}

fn unreached(error: &StoreError) -> Fault {
    let why = error_chain(error);
    let code = match error {
        StoreError::Connect { source } => source.code(),
        StoreError::Url { source } => {
            return Fault::wrong(format!("its address cannot be read ({source})"), "correct its address");
        }
        _ => None,
    };
    let (says, next) = match code {
        Some(&SqlState::INVALID_PASSWORD) => {
            ("credentials rejected", "correct user and password in its address")
        }
        Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => (
            "the user may not connect",
            "correct the user in its address, use TLS (sslmode=require), or allow it in pg_hba.conf",
        ),
        Some(&SqlState::TOO_MANY_CONNECTIONS) => (
            "it has no free connection",
            "raise max_connections or the user's CONNECTION LIMIT, or end sessions (pg_stat_activity)",
        ),
        Some(&SqlState::INVALID_CATALOG_NAME) => {
            ("there is no such database", "create it with `createdb`, or correct its name")
        }
        _ if why.contains("unsupported startup parameter") => (
            "a connection pooler rejects the settings of sessions",
            "name PostgreSQL itself: no PgBouncer may be between it and the services",
        ),
        _ => ("it cannot be reached", NOT_THERE),
    };
    Fault::wrong(format!("{says} ({why})"), next)
}

/// Checks the schema, and reads the newest block and the server's clock into `heads`.
async fn schema(client: &Client, heads: &mut Heads) -> Checked {
    let unread = |why| Fault::wrong(format!("it cannot be read ({why})"), "see the database's log");
    let reading = timeout(WITHIN, async {
        let state = schema::state(client).await.map_err(|error| error_chain(&error))?;
        read_heads(client, state.is_ready(), heads).await.map_err(|error| error_chain(&error))?;
        Ok(state)
    });
    let state = reading.await.map_err(|_| {
        Fault::wrong("the database does not answer", "check its sessions in pg_stat_activity")
    })?;
    let state = state.map_err(|why: String| unread(why))?;
    if !state.is_ready() {
        // The tables may only be hidden.
        let suitable = timeout(WITHIN, check_database(client)).await;
        if let Ok(Err(LoadError::Unsuitable(reason))) = suitable {
            let (says, next) = reason.split_once(": ").unwrap_or((reason.as_str(), "use another database"));
            return Err(Fault::wrong(says, next));
        }
        let (missing, newest) = (state.missing.len(), state.newest);
        return Err(Fault::wrong(
            format!("{missing} migrations are missing (it is at {} of {newest})", state.applied),
            "`mesh migrate --postgres URL` applies them, and so do `mesh load` and `mesh up --postgres`",
        ));
    }
    let head = heads.store.map_or("no block yet".to_owned(), |height| format!("newest block {height}"));
    Ok(format!("version {}, {head}", state.applied))
}

/// Reads the server's clock, and with the newest schema its newest block.
async fn read_heads(
    client: &Client,
    is_newest: bool,
    heads: &mut Heads,
) -> Result<(), tokio_postgres::Error> {
    let clock = "SELECT extract(epoch FROM clock_timestamp())::float8";
    let clock: f64 = client.query_one(clock, &[]).await?.get(0);
    heads.clocks.push(("the database", clock - now()));
    let newest = "SELECT height, extract(epoch FROM block_time)::float8 FROM last_block";
    let newest = if is_newest { client.query_opt(newest, &[]).await? } else { None };
    if let Some(row) = newest {
        heads.store = Some(row.get(0));
        heads.newest = Some(row.get::<_, f64>(1) - now());
    }
    Ok(())
}

/// Checks that a bus server accepts the credentials in its address, or in a file, and its version.
async fn bus(url: &str, file: Option<PathBuf>, ca: Option<PathBuf>) -> Checked {
    let (scheme, user, address) = parts_of_bus(url);
    let credentials = match file {
        None => user.map(|user| {
            let (user, password) = user.split_once(':').unwrap_or((user, ""));
            Credentials::Password { user: user.to_owned(), password: password.to_owned() }
        }),
        Some(file) => Some(Credentials::read(&file).map_err(|error| {
            let says = format!("the credentials in {} cannot be read ({error})", file.display());
            Fault::wrong(says, "make the file readable for the user of the mesh")
        })?),
    };
    let options =
        async_nats::ConnectOptions::new().name("mesh doctor").connection_timeout(WITHIN).max_reconnects(1);
    let options = ca.into_iter().fold(options, async_nats::ConnectOptions::add_root_certificates);
    let options = match credentials {
        None => options,
        Some(Credentials::Password { user, password }) => options.user_and_password(user, password),
        Some(Credentials::Jwt(text)) => options.credentials(&text).map_err(|error| {
            let says = format!("the credentials are malformed ({error})");
            Fault::wrong(says, "use the .creds file of the server's operator")
        })?,
    };
    let url = format!("{scheme}://{address}");
    let addresses: Vec<&str> = url.split(',').map(str::trim).collect();
    let connected = timeout(WITHIN * 2, options.connect(addresses)).await;
    let connected = connected.map_err(|_| Fault::wrong("it does not answer", NOT_THERE))?;
    let release = connected.map_err(|error| refused_by_bus(&error))?.server_info().version;
    if version(&release).is_some_and(|found| found >= OLDEST_NATS) {
        return Ok(format!("nats-server {release}, credentials accepted"));
    }
    let next = format!("run {}.{} or later", OLDEST_NATS.0, OLDEST_NATS.1);
    Err(Fault::wrong(format!("nats-server {release} is too old"), next))
}

fn refused_by_bus(error: &async_nats::ConnectError) -> Fault {
    let why = error_chain(error);
    if !rejects_credentials(error) {
        return Fault::wrong(format!("it cannot be reached ({why})"), NOT_THERE);
    }
    Fault::wrong(
        format!("credentials rejected by nats-server ({why})"),
        "correct user and password: nats://user:password@host:port, or the file of MESH_BUS_CREDENTIALS",
    )
}

/// Checks a consensus node, and reads its newest block and its clock into `heads`.
async fn node(url: &str, heads: &mut Heads) -> Checked {
    let away = |why: String| {
        Fault::wrong(format!("it is unreachable ({why})"), "start it, or correct the address of its RPC")
    };
    // Services may have several addresses; they prefer the first.
    let node: NodeUrl = url.split(',').next().unwrap_or(url).trim().parse().map_err(away)?;
    let request = async {
        let client = client_builder(std::slice::from_ref(&node)).build()?;
        let answer = node.get(&client, "status").timeout(WITHIN).send().await?;
        let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
        // It has a resolution of one second.
        let clock = date.map(|date| date.timestamp().as_second() as f64);
        Ok::<_, reqwest::Error>((answer.status(), clock, answer.bytes().await?))
    };
    let (status, clock, body) = request.await.map_err(|error| away(describe(error)))?;
    if matches!(status.as_u16(), 401 | 403) {
        let says = format!("credentials rejected: HTTP {status}");
        return Err(Fault::wrong(says, "correct user and password, or the key, in its address"));
    }
    let answer: Value = serde_json::from_slice(&body)
        .map_err(|_| away(format!("the server there is not a consensus node: HTTP {status}")))?;
    heads.clocks.extend(clock.map(|clock| ("the node", clock - now())));
    let sync = &answer["result"]["sync_info"];
    let height = sync["latest_block_height"].as_str().and_then(|height| height.parse::<i64>().ok());
    let height = height.ok_or_else(|| away("the server there is not a consensus node".to_owned()))?;
    if sync["catching_up"] == true {
        let next = "it takes no transactions until it has all blocks; wait, or name another";
        return Err(Fault::warning(format!("it is catching up, at block {height}"), next));
    }
    heads.node = Some(height);
    if answer["result"]["node_info"]["other"]["tx_index"] == "off" {
        return Err(Fault::warning(
            format!("at block {height}; its transaction indexing is off, so it finds no transaction by hash"),
            "set `indexer = \"kv\"` below `[tx_index]` in the node's config.toml and restart it",
        ));
    }
    Ok(format!("at block {height}"))
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Checks that the clocks of the servers and of this machine agree; `None` when no server's clock is known.
fn clock(heads: &Heads) -> Option<Checked> {
    let next = "set the clocks by NTP (`timedatectl set-ntp true`): deadlines, ages and limits go by them";
    for (whose, ahead) in &heads.clocks {
        if ahead.abs() > CLOCKS_DIFFER {
            let than = if *ahead > 0.0 { "ahead of" } else { "behind" };
            let says = format!("the clock of {whose} is {:.0} s {than} this machine's", ahead.abs());
            return Some(Err(Fault::wrong(says, next)));
        }
    }
    if let Some(ahead) = heads.newest.filter(|ahead| *ahead > CLOCKS_DIFFER) {
        let says = format!("the newest block is {ahead:.0} s in the future of this machine's clock");
        return Some(Err(Fault::wrong(says, next)));
    }
    let names: Vec<&str> = heads.clocks.iter().map(|(whose, _)| *whose).collect();
    (!names.is_empty())
        .then(|| Ok(format!("the clocks of {} and of this machine agree", names.join(" and "))))
}

/// Checks that the store is not far behind the node; `None` when one of them is unknown.
fn lag(heads: &Heads) -> Option<Checked> {
    let behind = heads.node? - heads.store?;
    if behind < -1 {
        let says = format!("the node is {} blocks behind the database", -behind);
        let next = "name a node that has these blocks; if its chain was reset, begin with an empty database (another --home)";
        return Some(Err(Fault::warning(says, next)));
    }
    let says = format!("the database is {} blocks behind the node", behind.max(0));
    let next = "check the block writer";
    Some(if behind > BEHIND { Err(Fault::warning(says, next)) } else { Ok(says) })
}

fn see_log(process: &str) -> String {
    format!("see its log, logs/{process}.log in the home")
}

async fn service(row: &Row, admin: &str) -> Checked {
    let name = format!("{}-{}", row.service, row.replica);
    let answer = async { why_unready(&local_client()?, admin, WITHIN).await };
    let next = see_log(&name);
    match answer.await {
        Ok(None) => Ok(format!("{name} is ready")),
        Ok(Some(why)) => Err(Fault::wrong(format!("{name} is not ready: {why}"), next)),
        Err(error) => Err(Fault::wrong(format!("{name} does not answer ({})", error_chain(&error)), next)),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::State, *};

    #[test]
    fn different_clocks_are_reported_with_server_and_sign() {
        let found = |heads: &Heads| clock(heads).map(|checked| Finding::of("clock", checked));
        let state = |heads: &Heads| found(heads).unwrap().state;
        assert_eq!(found(&Heads::default()), None);
        let clocks = |ahead| Heads { clocks: vec![("the node", ahead)], ..Heads::default() };
        assert_eq!(state(&clocks(0.9)), State::Fine);
        let wrong = found(&clocks(-90.0)).unwrap();
        assert_eq!(wrong.state, State::Wrong);
        assert_eq!(wrong.says, "the clock of the node is 90 s behind this machine's");
        assert_eq!(state(&Heads { newest: Some(60.0), ..clocks(0.0) }), State::Wrong);
        assert_eq!(state(&Heads { newest: Some(-1e6), ..clocks(0.0) }), State::Fine, "a chain may rest");
    }
}
