//! Starting cargo from a program that cargo itself may have started.

use std::{env, process::Command};

/// What `cargo run` and `cargo test` tell a program of its own package, by the beginnings of the variables'
/// names.
const OF_A_PACKAGE: &[&str] = &[
    "CARGO_BIN_",
    "CARGO_CRATE_",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_PRIMARY_",
    "CARGO_TARGET_TMPDIR",
    "OUT_DIR",
];

/// The cargo that started this program, else the one on the path.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    forget_package(&mut command);
    command
}

/// Takes from a command what cargo said of the package of this program. Build scripts may ask to run again
/// when such a variable changes (that of ring does), so a cargo that inherited them would compile half of the
/// project anew whenever another program starts it.
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
        let told = String::from_utf8_lossy(&env.output().expect("`env` runs").stdout).into_owned();
        assert!(!told.contains("CARGO_PKG_") && !told.contains("CARGO_MANIFEST_"), "{told}");
        assert!(told.contains("PATH="), "{told}");
    }
}
