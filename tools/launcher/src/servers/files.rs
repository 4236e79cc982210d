//! The small files of a private server: its port, its secrets, the end of its log.

use std::{
    fs::{self, Permissions},
    io::{self, Read, Seek, SeekFrom},
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use rand::Rng;

use super::ServerError;
use crate::folder;

/// Ports that are tried first. They are below the ephemeral range, so that no outgoing connection takes the
/// port of a server during its restart.
const PRIVATE_PORTS: std::ops::Range<u16> = 20_000..32_000;
const PORT_ATTEMPTS: usize = 64;

/// Creates a folder and its parents, writable by their owner only.
pub(super) fn make_folder(path: &Path) -> Result<(), ServerError> {
    folder::create(path).map_err(ServerError::file(path))
}

/// Returns the port stored in `file` when it is still free, or chooses a free one and stores it.
pub(super) fn persistent_port(file: &Path) -> Result<u16, ServerError> {
    let stored = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
    if let Some(port) = stored.filter(|port| is_free(*port)) {
        return Ok(port);
    }
    let port = free_port().map_err(ServerError::file(file))?;
    fs::write(file, format!("{port}\n")).map_err(ServerError::file(file))?;
    Ok(port)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// A free port, if possible below the ephemeral range. Another process may take it before it is used.
///
/// # Errors
/// This machine has no free port.
pub fn free_port() -> std::io::Result<u16> {
    let mut random = rand::rng();
    for _ in 0..PORT_ATTEMPTS {
        let port = random.random_range(PRIVATE_PORTS);
        if is_free(port) {
            return Ok(port);
        }
    }
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Returns the secret stored in `file`, or makes one and stores it, readable by the owner only.
pub(super) fn persistent_secret(file: &Path) -> Result<String, ServerError> {
    let stored = read_secret(file)?;
    if !stored.is_empty() {
        return Ok(stored);
    }
    let secret = make_secret();
    write_private(file, &format!("{secret}\n"))?;
    Ok(secret)
}

/// Returns the password in the one line `user:password` of `file`, or makes one and stores it, readable by
/// the owner only.
pub(super) fn persistent_credentials(file: &Path, user: &str) -> Result<String, ServerError> {
    let stored = read_secret(file)?;
    match stored.split_once(':') {
        Some((name, password)) if name == user && !password.is_empty() => Ok(password.to_owned()),
        _ => {
            let password = make_secret();
            write_private(file, &format!("{user}:{password}\n"))?;
            Ok(password)
        }
    }
}

pub(super) fn stored_secret(file: &Path) -> Result<String, ServerError> {
    match read_secret(file)? {
        none if none.is_empty() => Err(ServerError::file(file)(io::ErrorKind::NotFound.into())),
        secret => Ok(secret),
    }
}

/// The trimmed text of a file, empty when there is none. A file that others may use, after a copy of the home
/// for example, becomes private again.
fn read_secret(file: &Path) -> Result<String, ServerError> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        text => text.map_err(ServerError::file(file))?,
    };
    let mode = fs::metadata(file).map_err(ServerError::file(file))?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(file, Permissions::from_mode(0o600)).map_err(ServerError::file(file))?;
    }
    Ok(text.trim().to_owned())
}

fn make_secret() -> String {
    let bytes: [u8; 16] = rand::rng().random();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file of a server atomically, readable by its owner only.
pub(super) fn write_private(file: &Path, text: &str) -> Result<(), ServerError> {
    crate::write_private(file, text.as_bytes(), true).map_err(ServerError::file(file))
}

/// Returns the last `bytes` of a log, or nothing when it cannot be read.
pub fn tail(log: &Path, bytes: u64) -> String {
    let read = || {
        let mut file = fs::File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        std::io::Result::Ok(String::from_utf8_lossy(&end).into_owned())
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_kept_while_it_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("port");
        let port = persistent_port(&file).unwrap();
        assert_eq!(persistent_port(&file).unwrap(), port);
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let other = persistent_port(&file).unwrap();
        assert_ne!(other, port);
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{other}\n"));
    }

    #[test]
    fn a_secret_is_made_once_and_for_the_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let secret = persistent_secret(&file).unwrap();
        assert_eq!(secret.len(), 32);
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(persistent_secret(&file).unwrap(), secret);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(persistent_secret(&folder.path().join("other")).unwrap(), secret);
        stored_secret(&folder.path().join("none")).unwrap_err();
        fs::write(&file, b"\xff").unwrap();
        persistent_secret(&file).unwrap_err();
        assert_eq!(fs::read(&file).unwrap(), b"\xff", "what cannot be read is not replaced");
    }

    #[test]
    fn the_tail_of_a_log_is_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "first\nlast\n").unwrap();
        assert_eq!(tail(&log, 5), "last\n");
        assert_eq!(tail(&log, 500), "first\nlast\n");
        assert_eq!(tail(&folder.path().join("none"), 5), "");
    }
}
