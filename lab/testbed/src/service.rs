//! One service as its own process, as in production.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use mesh_launcher::{
    bus::Bus,
    process::{Process, ProcessSpec, Signal},
};
use tokio::time::{Instant, interval};

use crate::{Answer, Database, http_client, nats, retry, secrets, servers, unique};

const READY_WITHIN: Duration = Duration::from_secs(20);
/// Time limit of a wait for a metric; longer than any configured interval of these tests.
const METRIC_WITHIN: Duration = Duration::from_secs(60);
const POLL_PAUSE: Duration = Duration::from_millis(10);
const STOP_GRACE_S: u64 = 5;

/// Maximum length of the log's end that a failed start shows, bytes.
const SHOWN_LOG_BYTES: usize = 4000;

/// Variables of the test's own environment that services inherit. All others are left out, so that no
/// `MESH_…` of a developer's shell changes the test.
const INHERITED_VARIABLES: [&str; 4] = ["RUST_LOG", "RUST_BACKTRACE", "LLVM_PROFILE_FILE", "LD_LIBRARY_PATH"];

/// A running service. Dropping it kills it.
#[derive(Debug)]
pub struct Service {
    spec: ProcessSpec,
    process: Process,
    admin: String,
    admin_file: PathBuf,
    client: reqwest::Client,
}

/// The configuration of a service; made by [`Service::configure`].
#[derive(Debug)]
pub struct ServiceSetup {
    pub(crate) spec: ProcessSpec,
    pub(crate) bus: Option<Bus>,
}

impl ServiceSetup {
    /// Gives it a database, as the service's own user there.
    #[must_use]
    pub fn database(self, database: &Database) -> Self {
        let url = database.url_of(&self.spec.name);
        self.env("MESH_DATABASE_URL", url)
    }

    /// Sets a variable; the last value of a name wins, also over those that the testbed sets.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.spec = self.spec.env(name, value);
        self
    }

    /// Runs this file instead of the binary in the test's target folder, e.g. `env!("CARGO_BIN_EXE_query")`.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.spec.program = program.into();
        self
    }

    /// Uses another bus than the one that all tests share; the service is the user of its own name there.
    #[must_use]
    pub fn bus(mut self, bus: &Bus) -> Self {
        self.bus = Some(bus.clone());
        self
    }

    /// Starts it and waits until it is ready; panics with the end of its log when it is not.
    pub async fn start(self) -> Service {
        let service = self.start_unready().await;
        await_ready(&service.spec, &service.process, &service.admin_file, &service.client, true).await;
        service
    }

    /// Starts it and waits until it answers, ready or not.
    pub async fn start_unready(self) -> Service {
        let Self { mut spec, bus } = self;
        assert!(
            spec.program.exists(),
            "there is no {}: run `cargo build --workspace` first, so that tests find the services",
            spec.program.display()
        );
        let bus = match bus {
            Some(bus) => bus,
            None => nats().await.bus().clone(),
        };
        // Before the other variables, which override them.
        spec.env.splice(0..0, bus.variables(&spec.name));
        for (name, value) in &spec.env {
            secrets::register(name, value);
        }
        let (client, admin_file) = (http_client(), admin_file_of(&spec.log));
        let (process, admin) = start(&spec, &admin_file, &client, false).await;
        Service { spec, process, admin, admin_file, client }
    }
}

impl Service {
    /// Begins the configuration of a service by the name of its binary. It gets its own subject prefix
    /// on the shared bus unless it is given a `MESH_BUS_PREFIX`.
    pub fn configure(name: &str) -> ServiceSetup {
        let log = servers::folder().join(format!("logs/{name}-{}.log", unique()));
        let mut spec = ProcessSpec::new(name, binary_of(name), log);
        spec.clear_env = true;
        spec.grace = Duration::from_secs(STOP_GRACE_S + 1);
        let inherited = INHERITED_VARIABLES.into_iter().filter_map(|name| Some((name, env::var(name).ok()?)));
        spec = inherited.fold(spec, |spec, (name, value)| spec.env(name, value));
        let admin_file = admin_file_of(&spec.log);
        spec = spec
            .env("MESH_BUS_PREFIX", bus_prefix())
            .env("MESH_ADMIN_LISTEN", "127.0.0.1:0")
            .env("MESH_ADMIN_ADDRESS_FILE", admin_file.to_string_lossy())
            .env("MESH_STOP_GRACE_S", STOP_GRACE_S.to_string());
        ServiceSetup { spec, bus: None }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The address of `/livez`, `/readyz` and `/metrics`: `http://127.0.0.1:<port>`.
    pub fn admin_url(&self) -> &str {
        &self.admin
    }

    /// Gets a path from its admin port, e.g. `/metrics`.
    pub async fn admin(&self, path: &str) -> Answer {
        let ask = self.client.get(format!("{}{path}", self.admin));
        // The admin port closes connections after 5 s: a reused one may close under the request.
        let ask = ask.header("connection", "close");
        Answer::to(ask.header("accept", "application/openmetrics-text, */*")).await
    }

    /// The sum of its metrics whose lines start with `name`; 0 without one. A name without labels ends with a space,
    /// so that longer names do not count.
    pub async fn metric(&self, name: &str) -> f64 {
        let page = self.admin("/metrics").await;
        let lines = page.text().lines().filter(|line| line.starts_with(name));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        // The sum of no floating-point numbers is -0.
        values.fold(0.0, |sum, value| sum + value)
    }

    /// Waits until [`Self::metric`] `fits`; panics with its value after a minute.
    pub async fn until_metric(&self, name: &str, fits: impl Fn(f64) -> bool) {
        retry(METRIC_WITHIN, async || {
            let value = self.metric(name).await;
            if fits(value) { Ok(()) } else { Err(format!("{name:?} of {} is {value}", self.spec.name)) }
        })
        .await;
    }

    /// Waits until its `/readyz` has a status; returns the text.
    pub async fn await_readiness(&self, status: u16, within: Duration) -> String {
        retry(within, async || {
            let answer = self.admin("/readyz").await;
            if answer.status == status { Ok(answer.text().to_owned()) } else { Err(format!("{answer:?}")) }
        })
        .await
    }

    /// Its whole log so far.
    pub fn log(&self) -> String {
        read(&self.spec.log)
    }

    /// Sends it a signal, e.g. STOP and CONT to freeze and resume it.
    pub fn signal(&self, signal: Signal) {
        self.process
            .signal(signal)
            .unwrap_or_else(|error| panic!("cannot signal {}: {error}", self.spec.name));
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub async fn kill(&self) -> ExitStatus {
        self.process.kill_group();
        self.ended().await
    }

    /// Stops it with SIGTERM and waits until it is gone; it is killed after its grace period.
    pub async fn stop(&self) -> ExitStatus {
        self.process.stop().await.unwrap_or_else(|error| panic!("cannot stop {}: {error}", self.spec.name))
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.process.exit_status().is_some()
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&self) -> ExitStatus {
        self.process
            .wait()
            .await
            .unwrap_or_else(|error| panic!("cannot wait for {}: {error}", self.spec.name))
    }

    /// Kills it if it still runs, starts it again and waits until it is ready.
    pub async fn restart(&mut self) {
        self.kill().await;
        (self.process, self.admin) = start(&self.spec, &self.admin_file, &self.client, true).await;
    }
}

impl Drop for Service {
    /// Fails every test in which a service's log shows a credential.
    fn drop(&mut self) {
        self.process.kill_group();
        if !std::thread::panicking() {
            secrets::assert_not_in(&format!("the log of {}", self.spec.name), self.log().as_bytes());
        }
    }
}

/// A subject prefix on the shared bus that no other test uses.
pub(crate) fn bus_prefix() -> String {
    format!("test{}", unique())
}

/// Tests are built into `<target>/<profile>/deps`, services one folder above.
fn binary_of(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap_or_else(|error| panic!("where is this test? {error}"));
    let folder = test.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    folder.join(name)
}

/// The file to which a service with this log writes the address of its admin port.
fn admin_file_of(log: &Path) -> PathBuf {
    log.with_extension("admin")
}

async fn start(
    spec: &ProcessSpec,
    admin_file: &Path,
    client: &reqwest::Client,
    until_ready: bool,
) -> (Process, String) {
    // The file of an earlier start, if any.
    let _ = fs::remove_file(admin_file);
    let process = Process::spawn(spec)
        .unwrap_or_else(|error| panic!("cannot start {}: {error}", spec.program.display()));
    let admin = await_ready(spec, &process, admin_file, client, until_ready).await;
    (process, admin)
}

/// Waits until a process answers on its admin port, as ready if that is awaited; returns the port's address.
async fn await_ready(
    spec: &ProcessSpec,
    process: &Process,
    admin_file: &Path,
    client: &reqwest::Client,
    until_ready: bool,
) -> String {
    let deadline = Instant::now() + READY_WITHIN;
    let (mut last_state, mut pace) =
        ("it has not written its admin address".to_owned(), interval(POLL_PAUSE));
    while Instant::now() < deadline {
        pace.tick().await;
        if let Some(status) = process.exit_status() {
            panic!("{} ended with {status} before it was ready; its log:\n{}", spec.name, end_of_log(spec));
        }
        if let Ok(address) = fs::read_to_string(admin_file) {
            let admin = format!("http://{}", address.trim());
            match Answer::try_to(client.get(format!("{admin}/readyz"))).await {
                Ok(answer) if answer.status == 200 || !until_ready => return admin,
                Ok(answer) => last_state = format!("{answer:?}"),
                Err(error) => last_state = format!("{error:?}"),
            }
        }
    }
    panic!(
        "{} was not ready after {READY_WITHIN:?}: {last_state}; its log:\n{}",
        spec.name,
        end_of_log(spec)
    );
}

/// The end of a process's log, for a panic.
pub(crate) fn end_of_log(spec: &ProcessSpec) -> String {
    let log = read(&spec.log);
    let begin = log.ceil_char_boundary(log.len().saturating_sub(SHOWN_LOG_BYTES));
    log[begin..].to_owned()
}

fn read(log: &Path) -> String {
    fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn panic_of(setup: ServiceSetup) -> String {
        let panic = tokio::spawn(setup.start()).await.unwrap_err().into_panic();
        *panic.downcast::<String>().unwrap()
    }

    #[tokio::test]
    async fn a_service_gets_only_what_it_is_given_and_can_be_restarted() {
        let database = Database::fresh().await;
        let setup = Service::configure("query").database(&database);
        let mut service = setup.env("MESH_LOG", "info").env("MESH_LOG", "debug").start().await;
        let environment = read(Path::new(&format!("/proc/{}/environ", service.pid())));
        let value = |name: &str| environment.split('\0').find_map(|line| line.strip_prefix(name));
        assert_eq!((value("MESH_LOG="), value("CARGO_PKG_NAME=")), (Some("debug"), None));
        let (pid, admin) = (service.pid(), service.admin_url().to_owned());
        service.restart().await;
        assert_ne!((service.pid(), service.admin_url()), (pid, admin.as_str()));
        assert!(service.log().contains("started"));
    }

    #[tokio::test]
    async fn a_service_that_cannot_start_fails_the_test_with_its_log() {
        let panic_text = panic_of(Service::configure("query")).await;
        assert!(
            panic_text.contains("before it was ready") && panic_text.contains("MESH_DATABASE_URL"),
            "{panic_text}"
        );
        let panic_text = panic_of(Service::configure("no-such-service")).await;
        assert!(panic_text.contains("no-such-service: run `cargo build --workspace`"), "{panic_text}");
    }
}
