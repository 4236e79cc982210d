//! Installs missing Debian packages by apt-get, where that is possible without a password.

use std::{
    fs::OpenOptions,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    ServerError, files,
    find::{OLDEST_POSTGRES, PostgresPrograms, find_nats, find_postgres},
    succeeds,
};

const INSTALL_ON_DEBIAN: &str = include_str!("install-debian.sh");

/// Finds PostgreSQL 15 or later, installing it when it is missing. `progress` is called with a message before
/// slow steps; the output of the package manager goes to `log`.
///
/// # Errors
/// It is missing and cannot be installed.
pub async fn find_or_install_postgres(
    log: &Path,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<PostgresPrograms, ServerError> {
    if let Some(found) = find_postgres() {
        return Ok(found);
    }
    progress("installing PostgreSQL");
    let failure = install_debian_package("postgresql", log).await.err();
    find_postgres()
        .ok_or_else(|| missing(&format!("PostgreSQL {OLDEST_POSTGRES} or later"), "postgresql", failure))
}

/// Finds nats-server, installing it when it is missing, as [`find_or_install_postgres`] does.
///
/// # Errors
/// It is missing and cannot be installed.
pub async fn find_or_install_nats(
    log: &Path,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<PathBuf, ServerError> {
    if let Some(found) = find_nats() {
        return Ok(found);
    }
    progress("installing nats-server");
    let failure = install_debian_package("nats-server", log).await.err();
    find_nats().ok_or_else(|| missing("nats-server", "nats-server", failure))
}

/// The error message, which names both alternatives: apt-get and docker compose.
fn missing(what: &str, package: &str, failure: Option<String>) -> ServerError {
    let why = failure.unwrap_or_else(|| "what the package manager offers is too old".into());
    ServerError::Missing(format!(
        "{what} is not on this machine and could not be installed ({why}): install it so that it is on the PATH \
         (on Debian and Ubuntu: `sudo apt-get install {package}`; on macOS: `brew install {package}`), \
         or run the mesh in containers with `compose/secrets.sh && docker compose up --build --wait`"
    ))
}

/// Installs one Debian package; the output of the package manager goes to `log`.
///
/// # Errors
/// The reason why it cannot be installed, as a clause.
pub async fn install_debian_package(package: &'static str, log: &Path) -> Result<(), String> {
    let log = log.to_owned();
    tokio::task::spawn_blocking(move || install_now(package, &log)).await.map_err(|gone| gone.to_string())?
}

fn install_now(package: &str, log: &Path) -> Result<(), String> {
    if !succeeds(Command::new("apt-get").arg("--version")) {
        return Err("there is no apt-get here".into());
    }
    let mut command = root_shell().ok_or("that needs root or sudo without a password")?;
    let open_log = || {
        files::make_folder(log.parent().unwrap_or(Path::new("."))).map_err(|error| error.to_string())?;
        OpenOptions::new().create(true).append(true).open(log).map_err(|error| error.to_string())
    };
    let output = open_log()?;
    let errors = output.try_clone().map_err(|error| error.to_string())?;
    // In its own process group and with output to a file, so that it finishes even when this process is
    // interrupted: a killed package manager leaves packages half installed.
    command.args(["-c", INSTALL_ON_DEBIAN, "install", package]).process_group(0);
    let status = command.stdin(Stdio::null()).stdout(output).stderr(errors).status();
    match status.map_err(|error| error.to_string())? {
        status if status.success() => Ok(()),
        _ => Err(format!("apt-get failed, see {}", log.display())),
    }
}

/// A shell with root rights, if this process can get them.
fn root_shell() -> Option<Command> {
    if rustix::process::geteuid().is_root() {
        return Some(Command::new("sh"));
    }
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", "sh"]);
    succeeds(Command::new("sudo").args(["-n", "true"])).then_some(sudo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_in_one_sentence_with_both_ways_out() {
        let message =
            missing("nats-server", "nats-server", Some("there is no apt-get here".into())).to_string();
        assert!(message.starts_with("nats-server is not on this machine"), "{message}");
        assert!(
            message.contains("apt-get install nats-server") && message.contains("docker compose up"),
            "{message}"
        );
        assert!(!message.contains('\n') && !message.ends_with('.'), "{message}");
    }

    #[test]
    fn the_installer_is_a_valid_shell_script() {
        let checked = Command::new("sh").args(["-n", "-c", INSTALL_ON_DEBIAN]).status().unwrap();
        assert!(checked.success());
    }
}
