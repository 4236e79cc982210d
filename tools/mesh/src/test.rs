//! `mesh test`: runs the steps of CI and stops at the first step that fails; with a test program, only that.
//! `mesh update`: runs the tests of generated files so that they write these.
//!
//! Input: the checkout. Output: that of cargo, with a heading and the duration of each step. The tests share
//! one private PostgreSQL and one private nats-server, which exist for the run only.

mod decoder;
mod deny;
mod searched;

use std::{
    collections::BTreeSet,
    env,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use mesh_bus::permissions;
use mesh_launcher::{
    let_enter,
    process::Process,
    process_group,
    servers::{
        Durability, Nats, NatsSettings, Postgres, PostgresPrograms, find_or_install_cometbft,
        find_or_install_nats, find_or_install_postgres, start,
    },
    workspace,
};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

use self::searched::Findings;
use crate::{
    failure::{Failure, failed},
    signals::run_until_stopped,
    terminal::print_line,
};

const SERVER_PATIENCE: Duration = Duration::from_secs(60);
/// Timeout of a command that is no step of cargo: a download on a slow line is the longest.
const WITHIN: Duration = Duration::from_secs(5 * 60);
/// Any mesh, as a NATS wildcard in the permissions of the bus.
const ANY_MESH: &str = "*";

/// Runs all steps, or one test program.
pub(crate) async fn test(program: Option<&str>, filters: &[String]) -> Result<(), Failure> {
    run(async |root| match program {
        None => everything(root).await,
        Some(program) => {
            let mut only = vec!["--test", program, "--"];
            only.extend(filters.iter().map(String::as_str));
            build(root, &["--test", program]).await?;
            report_skipped(Toolbox::find(root).await?.tests(root, &only, &[]).await?);
            Ok(())
        }
    })
    .await
}

/// Writes every generated file of the repository.
pub(crate) async fn update() -> Result<(), Failure> {
    run(async |root| {
        build(root, &["--tests"]).await?;
        let which = ["--tests", "generated"];
        let update = ("MESH_UPDATE".to_owned(), "1".to_owned());
        Toolbox::find(root).await?.tests(root, &which, &[update]).await?;
        Ok(())
    })
    .await
}

/// Builds the services, which tests start, with these tests: without any, cargo selects other features and compiles
/// everything again.
async fn build(root: &Path, tests: &[&str]) -> Result<(), Failure> {
    let args = [&["build", "--workspace", "--bins"], tests].concat();
    step(root, "services and tests", &args, &[]).await
}

/// Runs steps in the checkout until they end or a signal stops them.
async fn run(steps: impl AsyncFnOnce(&Path) -> Result<(), Failure>) -> Result<(), Failure> {
    let root = workspace::root()
        .ok_or_else(|| Failure::failed("the current folder is not a checkout; run this command in one"))?;
    let begun = Instant::now();
    let interrupted = "the tests were interrupted; run the command again for a result";
    run_until_stopped(steps(&root), interrupted).await?;
    print_line(&format!("==> everything passed in {}", seconds(begun)));
    Ok(())
}

/// Runs all steps of CI.
async fn everything(root: &Path) -> Result<(), Failure> {
    let toolbox = Toolbox::find(root).await?;
    step(root, "formatting", &["fmt", "--all", "--check"], &[]).await?;
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step(root, "lints", &lints, &[]).await?;
    if let Ok(python) = &toolbox.python {
        decoder::test(root, python).await?;
    }
    build(root, &["--tests"]).await?;
    // No comment has an example to run, and looking for one takes two seconds a crate.
    let mut skipped = toolbox.tests(root, &["--tests"], &[]).await?;
    let strict = [("RUSTDOCFLAGS".to_owned(), "-D warnings".to_owned())];
    step(root, "documentation", &["doc", "--workspace", "--no-deps"], &strict).await?;
    skipped.extend(deny::check(root).await?);
    report_skipped(skipped);
    Ok(())
}

fn report_skipped(skipped: BTreeSet<String>) {
    for skipped in skipped {
        print_line(&format!("==> skipped: {skipped}"));
    }
}

/// The programs that tests use, and a folder for their servers.
struct Toolbox {
    folder: TempDir,
    postgres: PostgresPrograms,
    nats: PathBuf,
    /// The program, or why there is none.
    cometbft: Result<PathBuf, String>,
    /// The program, or why there is none.
    python: Result<PathBuf, String>,
}

impl Toolbox {
    /// Finds the programs and installs what is missing.
    async fn find(root: &Path) -> Result<Self, Failure> {
        let folder = temporary_folder()?;
        let log = folder.path().join("install.log");
        Ok(Self {
            postgres: find_or_install_postgres(&log, &print_line).await?,
            nats: find_or_install_nats(&log, &print_line).await?,
            cometbft: find_or_install_cometbft(root, print_line).await,
            python: decoder::find_or_install_python(root, &log).await,
            folder,
        })
    }

    /// Runs tests with servers of their own. Returns what they skipped, and why.
    async fn tests(
        &self,
        root: &Path,
        which: &[&str],
        env: &[(String, String)],
    ) -> Result<BTreeSet<String>, Failure> {
        let folder = self.folder.path();
        let servers = Servers::start(folder, &self.postgres, &self.nats).await?;
        let mut variables = servers.variables();
        variables.extend_from_slice(env);
        // Most tests wait for services more than they compute.
        let threads = 2 * std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        variables.push(("RUST_TEST_THREADS".to_owned(), threads.to_string()));
        if let Ok(program) = &self.cometbft {
            variables.push(on_path(program));
        }
        if let Ok(python) = &self.python {
            variables.push((decoder::PYTHON_VARIABLE.to_owned(), python.to_string_lossy().into_owned()));
        }
        // Continues after a failure, so that one run names all failing tests.
        let mut tests = vec!["test", "--workspace", "--no-fail-fast"];
        tests.extend(which);
        let tested = searched_step(root, "tests", &tests, &variables, &servers.secrets()).await;
        servers.stop().await;
        // When the database's data cannot be in this folder, a link there leads to it.
        if let Ok(elsewhere) = std::fs::read_link(folder.join("postgres")) {
            let _ = std::fs::remove_dir_all(elsewhere);
        }
        let mut skipped = tested?;
        let tests = [("with CometBFT", &self.cometbft), ("of the decoder in Python", &self.python)];
        for (which, program) in tests {
            skipped.extend(program.as_ref().err().map(|why| format!("the tests {which}, because {why}")));
        }
        Ok(skipped)
    }
}

async fn step(root: &Path, name: &str, args: &[&str], env: &[(String, String)]) -> Result<(), Failure> {
    searched_step(root, name, args, env, &[]).await.map(drop)
}

/// The variable by which tests find a program.
fn on_path(program: &Path) -> (String, String) {
    let folder = program.parent().unwrap_or(Path::new("/")).to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder).chain(env::split_paths(&path));
    let path = env::join_paths(folders).unwrap_or(path);
    ("PATH".to_owned(), path.to_string_lossy().into_owned())
}

/// Runs a step, which also fails when its output contains one of these secrets. Returns what tests skipped.
async fn searched_step(
    root: &Path,
    name: &str,
    args: &[&str],
    env: &[(String, String)],
    secrets: &[String],
) -> Result<BTreeSet<String>, Failure> {
    print_line(&format!("==> {name}: cargo {}", args.join(" ")));
    let begun = Instant::now();
    let mut command = Command::from(cargo_mesh::cargo());
    command.args(args).current_dir(root);
    command.envs(env.iter().map(|(name, value)| (name, value)));
    let ran = match secrets {
        [] => process_group::run(command).await.map(|status| (status, Findings::default())),
        _ => searched::run(command, secrets).await,
    };
    let (status, findings) = ran.map_err(|error| {
        Failure::missing(format!("cannot run cargo ({error}); install Rust from https://rustup.rs"))
    })?;
    if findings.has_secret {
        return Err(failed!("{name} printed a credential; see the line above"));
    }
    if status.success() {
        print_line(&format!("==> {name}: passed in {}", seconds(begun)));
        return Ok(findings.skipped);
    }
    // Thousands of lines may follow a report.
    for (test, report) in findings.failed {
        print_line(&format!("==> {test}"));
        report.iter().for_each(|line| print_line(line));
    }
    Err(failed!(
        "{name} failed after {}; correct what cargo says above, `cargo {}` repeats this step alone",
        seconds(begun),
        args.join(" ")
    ))
}

/// Whether a command succeeds in time; its output is discarded.
async fn succeeds(mut command: Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    matches!(timeout(WITHIN, process_group::run(command)).await, Ok(Ok(status)) if status.success())
}

fn seconds(begun: Instant) -> String {
    format!("{:.1} s", begun.elapsed().as_secs_f64())
}

/// A temporary folder that the database's system user can enter, too; removed on drop.
fn temporary_folder() -> Result<TempDir, Failure> {
    let make = || {
        let folder = tempfile::Builder::new().prefix("mesh-test-").tempdir()?;
        let_enter(folder.path())?;
        std::io::Result::Ok(folder)
    };
    make().map_err(|error| {
        failed!("cannot make a temporary folder ({error}); set TMPDIR to a place that can be written")
    })
}

/// The servers that all tests of a run share.
struct Servers {
    postgres: Process,
    nats: Process,
    database: Postgres,
    bus: Nats,
}

impl Servers {
    async fn start(folder: &Path, postgres: &PostgresPrograms, nats: &Path) -> Result<Self, Failure> {
        let (data, log) = (folder.join("postgres"), folder.join("postgres.log"));
        let database = Postgres::prepare(postgres, &data, &log, Durability::Throwaway).await?;
        let bus =
            Nats::prepare(nats, &folder.join("nats"), &folder.join("nats.log"), &NatsSettings::of(ANY_MESH))
                .await?;
        let (database_spec, bus_spec) = (database.spec(), bus.spec());
        let (postgres, nats) = tokio::try_join!(
            start(&database_spec, || database.ready(SERVER_PATIENCE)),
            start(&bus_spec, || bus.ready(SERVER_PATIENCE)),
        )?;
        Ok(Self { postgres, nats, database, bus })
    }

    fn variables(&self) -> Vec<(String, String)> {
        vec![
            ("MESH_TEST_POSTGRES_URL".to_owned(), self.database.url_of("postgres")),
            ("MESH_TEST_NATS_URL".to_owned(), self.bus.url()),
            ("MESH_TEST_NATS_CREDENTIALS".to_owned(), self.bus.users().to_string_lossy().into_owned()),
        ]
    }

    /// Their credentials, which no output may contain.
    fn secrets(&self) -> Vec<String> {
        let of_nats = permissions::users(ANY_MESH).into_iter().filter_map(|user| {
            let credentials = std::fs::read_to_string(self.bus.users().join(&user.name)).ok()?;
            credentials.trim().split_once(':').map(|(_, password)| password.to_owned())
        });
        let config: Option<tokio_postgres::Config> = self.database.url().parse().ok();
        let of_postgres = config.and_then(|config| config.get_password().map(<[u8]>::to_vec));
        let of_postgres = of_postgres.and_then(|password| String::from_utf8(password).ok());
        of_nats.chain(of_postgres).collect()
    }

    async fn stop(&self) {
        // Errors do not matter: the data is temporary, and dropping kills what did not stop.
        let _ = tokio::join!(self.postgres.stop(), self.nats.stop());
    }
}
