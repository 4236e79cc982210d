//! `mesh test`: runs the steps of CI and stops at the first step that fails.
//!
//! Comes in: the checkout. Goes out: the output of cargo, with a heading and the duration of each step. The
//! tests share one private PostgreSQL and one private nats-server, which exist for the run only.

mod decoder;
mod deny;
mod searched;

use std::{
    env,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use mesh_bus::permissions;
use mesh_launcher::{
    let_enter,
    process::Process,
    process_group,
    servers::{
        Durability, Nats, NatsSettings, Postgres, find_or_install_cometbft, find_or_install_nats,
        find_or_install_postgres, start,
    },
    workspace,
};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    failure::{Failure, failed},
    signals::{self, run_until_stopped},
    terminal::print_line,
};

const SERVER_PATIENCE: Duration = Duration::from_secs(60);
/// Any mesh, as a NATS wildcard in the permissions of the bus.
const ANY_MESH: &str = "*";
/// Real data next to the checkout, with which some tests compare answers.
const REAL_DATA: &str = "../shared/data";

/// Runs all steps.
pub(crate) async fn test() -> Result<(), Failure> {
    let mut signals = signals::watch()?;
    let root = workspace::root()
        .ok_or_else(|| Failure::failed("the current folder is not a checkout; run `mesh test` in one"))?;
    let begun = Instant::now();
    let interrupted = "the tests were interrupted; run `mesh test` again for a result";
    run_until_stopped(&mut signals, steps(&root), interrupted).await?;
    print_line(&format!("==> everything passed in {}", seconds(begun)));
    Ok(())
}

async fn steps(root: &Path) -> Result<(), Failure> {
    let folder = temporary_folder()?;
    let log = folder.path().join("install.log");
    let postgres = find_or_install_postgres(&log, &print_line).await?;
    let nats = find_or_install_nats(&log, &print_line).await?;
    let cometbft = find_or_install_cometbft(root, print_line).await;
    let python = decoder::find_or_install_python(root, &log).await;

    step(root, "formatting", &["fmt", "--all", "--check"], &[]).await?;
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step(root, "lints", &lints, &[]).await?;
    if let Ok(python) = &python {
        decoder::test(root, python).await?;
    }
    step(root, "services and tests", &["build", "--workspace", "--bins", "--tests"], &[]).await?;

    let servers = Servers::start(folder.path(), &postgres, &nats).await?;
    let mut variables = servers.variables();
    variables.push(("RUST_TEST_THREADS".to_owned(), test_threads().to_string()));
    if let Ok(program) = &cometbft {
        variables.push(on_path(program));
    }
    if let Ok(python) = &python {
        variables.push((decoder::PYTHON_VARIABLE.to_owned(), python.to_string_lossy().into_owned()));
    }
    // Continues after a failure, so that one run names all failing tests.
    let tests = ["test", "--workspace", "--no-fail-fast"];
    let tested = searched_step(root, "tests", &tests, &variables, &servers.secrets()).await;
    servers.stop().await;
    // When the database's data cannot be in this folder, a link there leads to it.
    if let Ok(elsewhere) = std::fs::read_link(folder.path().join("postgres")) {
        let _ = std::fs::remove_dir_all(elsewhere);
    }
    tested?;

    let strict = [("RUSTDOCFLAGS".to_owned(), "-D warnings".to_owned())];
    step(root, "documentation", &["doc", "--workspace", "--no-deps"], &strict).await?;
    let unchecked = deny::check(root).await?;
    for skipped in skipped(root, cometbft.err(), python.err()).into_iter().chain(unchecked) {
        print_line(&format!("==> skipped: {skipped}"));
    }
    Ok(())
}

async fn step(root: &Path, name: &str, args: &[&str], env: &[(String, String)]) -> Result<(), Failure> {
    searched_step(root, name, args, env, &[]).await
}

/// The variable by which tests find a program.
fn on_path(program: &Path) -> (String, String) {
    let folder = program.parent().unwrap_or(Path::new("/")).to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder).chain(env::split_paths(&path));
    let path = env::join_paths(folders).unwrap_or(path);
    ("PATH".to_owned(), path.to_string_lossy().into_owned())
}

/// The number of tests that a test program runs in parallel: most wait for services more than they compute.
fn test_threads() -> usize {
    2 * std::thread::available_parallelism().map_or(2, NonZeroUsize::get)
}

/// Runs a step, which also fails when its output contains one of these secrets.
async fn searched_step(
    root: &Path,
    name: &str,
    args: &[&str],
    env: &[(String, String)],
    secrets: &[String],
) -> Result<(), Failure> {
    print_line(&format!("==> {name}: cargo {}", args.join(" ")));
    let begun = Instant::now();
    let mut command = Command::from(cargo_mesh::cargo());
    command.args(args).current_dir(root);
    command.envs(env.iter().map(|(name, value)| (name, value)));
    let ran = match secrets {
        [] => process_group::run(command).await.map(|status| (status, false)),
        _ => searched::run(command, secrets).await,
    };
    let (status, shows_secrets) = ran.map_err(|error| {
        Failure::missing(format!("cannot run cargo ({error}); install Rust from https://rustup.rs"))
    })?;
    if shows_secrets {
        return Err(failed!("{name} printed a credential; see the line above"));
    }
    if status.success() {
        print_line(&format!("==> {name}: passed in {}", seconds(begun)));
        return Ok(());
    }
    Err(failed!(
        "{name} failed after {}; correct what cargo says above, `cargo {}` repeats this step alone",
        seconds(begun),
        args.join(" ")
    ))
}

fn seconds(begun: Instant) -> String {
    format!("{:.1} s", begun.elapsed().as_secs_f64())
}

/// What this run leaves out because this machine lacks it.
fn skipped(root: &Path, without_cometbft: Option<String>, without_python: Option<String>) -> Vec<String> {
    let mut skipped = Vec::new();
    skipped.extend(without_cometbft.map(|why| format!("the tests with CometBFT, because {why}")));
    skipped.extend(without_python.map(|why| format!("the tests of the decoder in Python, because {why}")));
    if !root.join(REAL_DATA).is_dir() {
        skipped.push(format!("the comparisons with real data, because {REAL_DATA} is not there"));
    }
    skipped
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
    postgres_url: String,
    nats_url: String,
    /// The folder with the credentials of its users.
    nats_users: PathBuf,
}

impl Servers {
    async fn start(
        folder: &Path,
        postgres: &mesh_launcher::servers::PostgresPrograms,
        nats: &Path,
    ) -> Result<Self, Failure> {
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
        Ok(Self {
            postgres,
            nats,
            postgres_url: database.url_of("postgres"),
            nats_url: bus.url(),
            nats_users: bus.users().to_owned(),
        })
    }

    fn variables(&self) -> Vec<(String, String)> {
        vec![
            ("MESH_TEST_POSTGRES_URL".to_owned(), self.postgres_url.clone()),
            ("MESH_TEST_NATS_URL".to_owned(), self.nats_url.clone()),
            ("MESH_TEST_NATS_CREDENTIALS".to_owned(), self.nats_users.to_string_lossy().into_owned()),
        ]
    }

    /// Their credentials, which no output may contain.
    fn secrets(&self) -> Vec<String> {
        let of_nats = permissions::users(ANY_MESH).into_iter().filter_map(|user| {
            let credentials = std::fs::read_to_string(self.nats_users.join(user.name)).ok()?;
            credentials.trim().split_once(':').map(|(_, password)| password.to_owned())
        });
        let config: Option<tokio_postgres::Config> = self.postgres_url.parse().ok();
        let of_postgres = config.and_then(|config| config.get_password().map(<[u8]>::to_vec));
        let of_postgres = of_postgres.and_then(|password| String::from_utf8(password).ok());
        of_nats.chain(of_postgres).collect()
    }

    async fn stop(&self) {
        // Errors do not matter: the data is temporary, and dropping kills what did not stop.
        let _ = tokio::join!(self.postgres.stop(), self.nats.stop());
    }
}
