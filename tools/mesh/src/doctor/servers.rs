//! Checks of the servers that a mesh uses, those named or those of the running mesh: whether they answer,
//! accept the credentials and have the right version; the difference of their clocks; readiness of each
//! service.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_nats::ConnectErrorKind;
use mesh_bus::Credentials;
use mesh_launcher::{control::Row, servers::OLDEST_NATS};
use mesh_problem::error_chain;
use mesh_store::{error::StoreError, migrate};
use reqwest::header::DATE;
use serde_json::Value;
use tokio::time::timeout;
use tokio_postgres::{Client, error::SqlState};

use super::{Running, finding::Finding, machine::version};
use crate::{
    cli::{DoctorArgs, node_url},
    http::local_client,
    up::backing::parts_of_bus,
};

/// Timeout of one answer.
const WITHIN: Duration = Duration::from_secs(5);
/// Tolerated difference of two clocks, seconds.
const CLOCKS_DIFFER: f64 = 5.0;
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
pub(super) async fn check_all(args: &DoctorArgs, running: &Running) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut heads = Heads::default();
    if let Some(url) = args.postgres.as_deref().or(running.variable("MESH_DATABASE_URL")) {
        findings.extend(database(url, &mut heads).await);
    }
    if let Some(url) = args.nats.as_deref().or(running.variable("MESH_BUS_URL")) {
        let credentials = running.variable("MESH_BUS_CREDENTIALS").map(PathBuf::from);
        findings.push(bus(url, credentials.filter(|_| args.nats.is_none())).await);
    }
    if let Some(url) = args.node.as_deref().or(running.variable("MESH_NODE_URL")) {
        findings.push(node(url, &mut heads).await);
    }
    findings.extend(clock(&heads));
    findings.extend(lag(&heads));
    for row in &running.rows {
        findings.extend(service(row).await);
    }
    findings
}

async fn database(url: &str, heads: &mut Heads) -> Vec<Finding> {
    const CHECK: &str = "database";
    let client = match timeout(WITHIN, mesh_store::connect(url, "mesh doctor")).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => return vec![unreached(&error)],
        Err(_) => {
            return vec![Finding::wrong(
                CHECK,
                "it does not answer",
                "start it, or correct its address; a firewall may swallow what is sent",
            )];
        }
    };
    let schema = match timeout(WITHIN, read_schema(&client, heads)).await {
        Ok(Ok(schema)) => schema,
        Ok(Err(why)) => {
            Finding::wrong("schema", format!("it cannot be read ({why})"), "look at the database's log")
        }
        Err(_) => Finding::wrong(
            "schema",
            "the database does not answer",
            "look at what it does (pg_stat_activity)",
        ),
    };
    vec![Finding::fine(CHECK, "it answers and lets us in"), schema]
}

fn unreached(error: &StoreError) -> Finding {
    const CHECK: &str = "database";
    let why = error_chain(error);
    let code = match error {
        StoreError::Connect { source } => source.code(),
        StoreError::Url { .. } => {
            return Finding::wrong(
                CHECK,
                format!("its address cannot be read ({why})"),
                "write it as postgres://user:password@host:port/database",
            );
        }
        _ => None,
    };
    let refused = [&SqlState::INVALID_PASSWORD, &SqlState::INVALID_AUTHORIZATION_SPECIFICATION];
    match code {
        Some(code) if refused.contains(&code) => Finding::wrong(
            CHECK,
            format!("wrong credentials: it does not let us in ({why})"),
            "correct user and password in its address",
        ),
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => Finding::wrong(
            CHECK,
            format!("there is no such database ({why})"),
            "make it with `createdb`, or correct its name",
        ),
        _ => {
            Finding::wrong(CHECK, format!("it cannot be reached ({why})"), "start it, or correct its address")
        }
    }
}

/// Checks the schema, and reads the newest block and the server's clock into `heads`.
async fn read_schema(client: &Client, heads: &mut Heads) -> Result<Finding, String> {
    const CHECK: &str = "schema";
    let state = migrate::state(client).await.map_err(|error| error_chain(&error))?;
    let failed = |error: tokio_postgres::Error| error_chain(&error);
    let clock = "SELECT extract(epoch FROM clock_timestamp())::float8";
    let clock: f64 = client.query_one(clock, &[]).await.map_err(failed)?.get(0);
    heads.clocks.push(("the database", clock - now()));
    if !state.is_ready() {
        let (missing, newest) = (state.missing.len(), state.newest);
        return Ok(Finding::wrong(
            CHECK,
            format!("{missing} migrations are missing (it is at {} of {newest})", state.applied),
            "`mesh load` and `mesh up --postgres` migrate; give the services a database that one of them has seen",
        ));
    }
    let newest = "SELECT height, extract(epoch FROM block_time)::float8 FROM last_block";
    if let Some(row) = client.query_opt(newest, &[]).await.map_err(failed)? {
        heads.store = Some(row.get(0));
        heads.newest = Some(row.get::<_, f64>(1) - now());
    }
    let head = heads.store.map_or("no block yet".to_owned(), |height| format!("newest block {height}"));
    Ok(Finding::fine(CHECK, format!("version {}, {head}", state.applied)))
}

async fn bus(url: &str, file: Option<PathBuf>) -> Finding {
    const CHECK: &str = "bus";
    let (scheme, user, address) = parts_of_bus(url);
    let credentials = match file {
        None => user.map(|user| {
            let (user, password) = user.split_once(':').unwrap_or((user, ""));
            Credentials::Password { user: user.to_owned(), password: password.to_owned() }
        }),
        Some(file) => match Credentials::read(&file) {
            Ok(credentials) => Some(credentials),
            Err(error) => {
                let says = format!("the credentials in {} cannot be read ({error})", file.display());
                return Finding::wrong(CHECK, says, "make the file readable for who runs the mesh");
            }
        },
    };
    let url = format!("{scheme}://{address}");
    let options =
        async_nats::ConnectOptions::new().name("mesh doctor").connection_timeout(WITHIN).max_reconnects(1);
    let options = match credentials {
        None => options,
        Some(Credentials::Password { user, password }) => options.user_and_password(user, password),
        Some(Credentials::Jwt(text)) => match options.credentials(&text) {
            Ok(options) => options,
            Err(error) => {
                let says = format!("the credentials are none ({error})");
                return Finding::wrong(CHECK, says, "give the file that the server's operator made");
            }
        },
    };
    let addresses: Vec<&str> = url.split(',').map(str::trim).collect();
    let client = match timeout(WITHIN * 2, options.connect(addresses)).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => {
            let refused = matches!(
                error.kind(),
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation
            );
            let why = error_chain(&error);
            return match refused {
                true => Finding::wrong(
                    CHECK,
                    format!("wrong credentials: nats-server does not let us in ({why})"),
                    "correct user and password: nats://user:password@host:port, or the file of MESH_BUS_CREDENTIALS",
                ),
                false => Finding::wrong(
                    CHECK,
                    format!("it cannot be reached ({why})"),
                    "start it, or correct its address",
                ),
            };
        }
        Err(_) => return Finding::wrong(CHECK, "it does not answer", "start it, or correct its address"),
    };
    let release = client.server_info().version;
    match version(&release) {
        Some(found) if found >= OLDEST_NATS => {
            Finding::fine(CHECK, format!("nats-server {release} lets us in"))
        }
        _ => Finding::wrong(
            CHECK,
            format!("nats-server {release} is too old"),
            format!("run {}.{} or later", OLDEST_NATS.0, OLDEST_NATS.1),
        ),
    }
}

async fn node(url: &str, heads: &mut Heads) -> Finding {
    const CHECK: &str = "node";
    let away = |why: String| {
        Finding::wrong(
            CHECK,
            format!("it is unreachable ({why})"),
            "start it, or correct the address of its RPC",
        )
    };
    // Services may have several addresses; they prefer the first.
    let url = url.split(',').next().unwrap_or(url).trim();
    if let Err(why) = node_url(url) {
        return away(why);
    }
    let request = async {
        let client = local_client().timeout(WITHIN).build()?;
        let answer = client.get(format!("{}/status", url.trim_end_matches('/'))).send().await?;
        let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok()?.parse().ok());
        let clock = date.and_then(|date: String| seconds_of_http(&date));
        Ok::<_, reqwest::Error>((clock, answer.json::<Value>().await?))
    };
    let (clock, answer) = match request.await {
        Ok(answered) => answered,
        Err(error) => return away(error_chain(&error)),
    };
    if let Some(clock) = clock {
        heads.clocks.push(("the node", clock - now()));
    }
    let sync = &answer["result"]["sync_info"];
    let Some(height) = sync["latest_block_height"].as_str().and_then(|height| height.parse::<i64>().ok())
    else {
        return away("what answers there is no consensus node".to_owned());
    };
    if sync["catching_up"] == true {
        let next = "it takes no transactions until it has all blocks; wait, or name another";
        return Finding::warning(CHECK, format!("it is catching up, at block {height}"), next);
    }
    heads.node = Some(height);
    Finding::fine(CHECK, format!("at block {height}"))
}

/// Seconds since 1970 of a `Date` header, which has a resolution of one second.
fn seconds_of_http(date: &str) -> Option<f64> {
    let time = jiff::fmt::rfc2822::parse(date).ok()?;
    Some(time.timestamp().as_second() as f64)
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Checks that all clocks agree; `None` when no clock is known.
fn clock(heads: &Heads) -> Option<Finding> {
    const CHECK: &str = "clock";
    let next = "set the clocks by NTP (`timedatectl set-ntp true`): deadlines, ages and limits go by them";
    for (whose, ahead) in &heads.clocks {
        if ahead.abs() > CLOCKS_DIFFER {
            let than = if *ahead > 0.0 { "ahead of" } else { "behind" };
            let says = format!("the clock of {whose} is {:.0} s {than} this machine's", ahead.abs());
            return Some(Finding::wrong(CHECK, says, next));
        }
    }
    if let Some(ahead) = heads.newest.filter(|ahead| *ahead > CLOCKS_DIFFER) {
        let says = format!("the newest block is {ahead:.0} s in the future of this machine's clock");
        return Some(Finding::wrong(CHECK, says, next));
    }
    (!heads.clocks.is_empty()).then(|| Finding::fine(CHECK, "all clocks agree"))
}

/// Checks that the store is not far behind the node.
fn lag(heads: &Heads) -> Option<Finding> {
    const CHECK: &str = "lag";
    let behind = heads.node? - heads.store?;
    Some(match behind {
        ..=BEHIND => {
            Finding::fine(CHECK, format!("the database is {} blocks behind the node", behind.max(0)))
        }
        _ => Finding::warning(
            CHECK,
            format!("the database is {behind} blocks behind the node"),
            "look at who writes blocks into the database",
        ),
    })
}

/// Checks a service's readiness; `None` for processes without an admin port, which are no services.
async fn service(row: &Row) -> Option<Finding> {
    const CHECK: &str = "service";
    let admin = row.admin.as_ref()?;
    let name = format!("{}-{}", row.service, row.replica);
    let response = async {
        let client = local_client().timeout(WITHIN).build()?;
        let answer = client.get(format!("{admin}/readyz")).send().await?;
        let status = answer.status();
        Ok::<_, reqwest::Error>((status, answer.text().await?))
    };
    let next = format!("look at its log, logs/{name}.log in the home");
    Some(match response.await {
        Ok((status, _)) if status.is_success() => Finding::fine(CHECK, format!("{name} is ready")),
        Ok((_, why)) => Finding::wrong(CHECK, format!("{name} is not ready: {}", why.trim()), next),
        Err(error) => {
            Finding::wrong(CHECK, format!("{name} does not answer ({})", error_chain(&error)), next)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{super::finding::State, *};

    #[test]
    fn different_clocks_are_reported_with_server_and_sign() {
        assert_eq!(clock(&Heads::default()), None);
        let clocks = |ahead| Heads { clocks: vec![("the node", ahead)], ..Heads::default() };
        assert_eq!(clock(&clocks(0.9)).unwrap().state, State::Fine);
        let wrong = clock(&clocks(-90.0)).unwrap();
        assert_eq!(
            (wrong.state, wrong.says.as_str()),
            (State::Wrong, "the clock of the node is 90 s behind this machine's")
        );
        let future = Heads { newest: Some(60.0), ..clocks(0.0) };
        assert_eq!(clock(&future).unwrap().state, State::Wrong);
        let past = Heads { newest: Some(-1e6), ..clocks(0.0) };
        assert_eq!(clock(&past).unwrap().state, State::Fine, "a chain may rest");
    }

    #[test]
    fn a_date_is_read_as_http_writes_it() {
        assert_eq!(seconds_of_http("Thu, 01 Jan 1970 00:01:00 GMT"), Some(60.0));
        assert_eq!(seconds_of_http("yesterday"), None);
    }
}
