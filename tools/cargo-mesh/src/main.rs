//! `cargo mesh …`: builds the programs that the command needs, in one call of cargo, and executes `mesh`. It
//! has no dependencies, so it compiles in a moment.
//!
//! Input: the arguments. Output: `mesh` with the same arguments, in the same process (exec). Commands use the
//! release build, except `test` and `update`: the tests and the `mesh` that runs them are built without
//! optimisation, because an optimised build takes many minutes on a fresh machine.

use std::{
    env,
    ffi::OsString,
    io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use cargo_mesh::{cargo, forget_package};

const SERVICES: &[&str] = &["edge", "query", "node-info", "tx-relay", "export", "ingest"];

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().skip(1).collect();
    let first = args.first().and_then(|first| first.to_str()).unwrap_or_default();
    let is_test = matches!(first, "test" | "update");
    let mut programs = vec!["mesh"];
    match first {
        "up" | "dist" => programs.extend(SERVICES),
        "bench" | "rig" => programs.extend(SERVICES.iter().chain(&["laboratory"])),
        _ => {}
    }
    match build(if is_test { "dev" } else { "release" }, &programs) {
        Ok(true) => {}
        Ok(false) => return ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: cannot run cargo ({error}); install Rust from https://rustup.rs");
            return ExitCode::FAILURE;
        }
    }
    let program = mesh_in(if is_test { "debug" } else { "release" });
    let mut mesh = Command::new(&program);
    forget_package(&mut mesh);
    let error = mesh.args(args).exec();
    eprintln!("error: cannot run {}: {error}", program.display());
    ExitCode::FAILURE
}

/// Builds programs of the project and shows cargo's output except its last line, so that nothing is shown
/// when nothing has to be built. Without `-p`, because cargo then resolves features for the whole workspace
/// and every build of a profile shares the same libraries.
fn build(profile: &str, programs: &[&str]) -> io::Result<bool> {
    let mut build = cargo();
    build.args(["build", "--profile", profile]).stderr(Stdio::piped());
    programs.iter().for_each(|program| {
        build.args(["--bin", program]);
    });
    if io::stderr().is_terminal() {
        build.args(["--color", "always"]);
    }
    let mut build = build.spawn()?;
    if let Some(words) = build.stderr.take() {
        for line in BufReader::new(words).split(b'\n') {
            let line = line?;
            if !String::from_utf8_lossy(&line).contains("Finished") {
                io::stderr().write_all(&[&line[..], b"\n"].concat())?;
            }
        }
    }
    Ok(build.wait()?.success())
}

/// The path of `mesh` in a sibling of this program's folder.
fn mesh_in(folder: &str) -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    let target = program.parent().and_then(Path::parent).unwrap_or(Path::new("target"));
    target.join(folder).join("mesh")
}
