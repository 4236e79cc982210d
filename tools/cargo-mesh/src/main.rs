//! `cargo mesh …`: builds the project's command line and becomes it. It has no dependencies, so it is there at once.
//!
//! Comes in: the arguments. Goes out: `mesh` with the same arguments, as the same process. What people work with is the
//! release build. The tests are built without optimisation, and so is the `mesh` that runs them: an optimised one
//! would cost a fresh machine many minutes and test nothing.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().skip(1).collect();
    let tests = args.first().is_some_and(|first| first == "test");
    let profile = if tests { "dev" } else { "release" };
    let mut run = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // No `-p`: cargo then resolves features for the whole workspace, so that the services reuse the same libraries.
    run.args(["run", "--bin", "mesh", "--profile", profile]);
    // What `cargo run` said about this package: build scripts that read it would run again, and much be built again.
    run.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    // The first build takes minutes, so it shows what it does.
    if is_built(if tests { "debug" } else { "release" }) {
        run.arg("--quiet");
    }
    let error = run.arg("--").args(args).exec();
    eprintln!("error: cannot run cargo ({error}); install Rust from https://rustup.rs");
    ExitCode::FAILURE
}

/// Whether the folder beside this program's own has a `mesh` already.
fn is_built(folder: &str) -> bool {
    let program = env::current_exe().ok();
    let target = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    target.is_some_and(|target| target.join(folder).join("mesh").is_file())
}
