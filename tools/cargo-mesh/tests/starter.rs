//! `cargo mesh …` with a fake cargo and a fake `mesh` that record how they were called. There is one test
//! only: a program that is written while another test starts a process cannot be run (ETXTBSY).
#![allow(clippy::unwrap_used)]

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use mesh_launcher::services::SERVICES;

const CARGO: &str = "#!/bin/sh\necho cargo \"$@\"; env; printf '   Compiling a v1\\n    Finished\\n' >&2\n";
const MESH: &str = "#!/bin/sh\necho mesh \"$@\"; env\n";
/// Variables that `cargo run` sets.
const OF_THE_CALLER: &[&str] = &[
    "CARGO_PKG_NAME", "CARGO_PKG_VERSION_MAJOR", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_LINKS",
    "CARGO_BIN_NAME",
];

fn program(place: &Path, text: &str) {
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, text).unwrap();
    fs::set_permissions(place, Permissions::from_mode(0o755)).unwrap();
}

struct Called {
    /// The arguments with which cargo was called.
    cargo: Vec<String>,
    mesh: Vec<String>,
    stdout: String,
    stderr: String,
}

fn call(folder: &Path, args: &[&str]) -> Called {
    let mut starter = Command::new(folder.join("target/debug/cargo-mesh"));
    starter.args(args).env("CARGO", folder.join("cargo")).env("CARGO_HOME", "kept");
    OF_THE_CALLER.iter().for_each(|name| {
        starter.env(name, "of the caller");
    });
    let Output { status, stdout, stderr } = starter.output().unwrap();
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert!(status.success(), "{stderr}");
    let words = |of: &str| {
        let mut calls = stdout.lines().filter_map(|line| line.strip_prefix(of)?.strip_prefix(' '));
        let call = calls.next().unwrap().split(' ').map(str::to_owned).collect();
        assert_eq!(calls.next(), None, "{of} is called once");
        call
    };
    Called { cargo: words("cargo"), mesh: words("mesh"), stdout, stderr }
}

#[test]
fn one_cargo_builds_what_the_command_needs_and_hears_nothing_of_its_caller() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    program(&folder.join("cargo"), CARGO);
    program(&folder.join("target/release/mesh"), MESH);
    program(&folder.join("target/debug/mesh"), MESH);
    fs::copy(env!("CARGO_BIN_EXE_cargo-mesh"), folder.join("target/debug/cargo-mesh")).unwrap();

    let up = call(folder, &["up", "--port", "0"]);
    assert_eq!(up.mesh, ["up", "--port", "0"]);
    assert_eq!(up.cargo[..3], ["build", "--profile", "release"]);
    let services: Vec<&str> = SERVICES.iter().map(|service| service.name).collect();
    let built = |called: &Called| -> Vec<String> {
        let pairs = called.cargo[3..].chunks(2);
        pairs.inspect(|pair| assert_eq!(pair[0], "--bin")).map(|pair| pair[1].clone()).collect()
    };
    assert_eq!(built(&up), [&["mesh"], &services[..]].concat(), "no more than `up` needs, and no less");
    for name in OF_THE_CALLER {
        assert!(!up.stdout.contains(name), "{name} reached cargo or mesh:\n{}", up.stdout);
    }
    assert_eq!(up.stdout.matches("CARGO_HOME=kept").count(), 2, "what users set stays");
    assert_eq!(up.stderr, "   Compiling a v1\n", "cargo's last word is not passed on");

    assert_eq!(built(&call(folder, &["ps"])), ["mesh"]);
    assert_eq!(built(&call(folder, &["dist"])), built(&up));
    assert_eq!(built(&call(folder, &["rig", "reads"])), [&["mesh"], &services[..], &["laboratory"]].concat());
    assert_eq!(call(folder, &["test"]).cargo, ["build", "--profile", "dev", "--bin", "mesh"]);
}
