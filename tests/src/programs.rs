//! Programs that are installed on the machine.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::{path::Path, process::Command};

/// Whether a program is installed on this machine.
pub fn is_here(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}

/// Runs a program, if it is installed, and returns its output.
pub fn run(program: &str, arguments: &[&str]) -> Option<String> {
    is_here(program).then(|| output(Command::new(program).args(arguments)))
}

/// Runs a program and returns its output.
///
/// # Panics
/// When it fails, or is not installed.
pub fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let [said, complaint] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{command:?}: {said}\n{complaint}");
    said
}
