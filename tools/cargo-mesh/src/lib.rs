//! Starts cargo from a program that cargo itself may have started.

use std::{env, process::Command};

/// Prefixes of the variables by which `cargo run` and `cargo test` describe a program's package to it.
const OF_A_PACKAGE: &[&str] = &[
    "CARGO_BIN_", "CARGO_CRATE_", "CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_PRIMARY_", "CARGO_TARGET_TMPDIR",
    "OUT_DIR",
];

/// The cargo that started this program, else the one on the path.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    forget_package(&mut command);
    command
}

/// Removes these variables from a command's environment. Some build scripts run again when one of them
/// changes (that of ring does), so a cargo that inherits them would recompile half of the project each time
/// another program starts it.
pub fn forget_package(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let is_of_package =
            name.to_str().is_some_and(|name| OF_A_PACKAGE.iter().any(|start| name.starts_with(start)));
        if is_of_package {
            command.env_remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_forgets_the_package_of_this_test() {
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some(), "cargo test says it");
        let mut env = Command::new("env");
        forget_package(&mut env);
        let environment = String::from_utf8_lossy(&env.output().expect("`env` runs").stdout).into_owned();
        assert!(
            !environment.contains("CARGO_PKG_") && !environment.contains("CARGO_MANIFEST_"),
            "{environment}"
        );
        assert!(environment.contains("PATH="), "{environment}");
    }
}
