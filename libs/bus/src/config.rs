//! Address of the bus, and the credentials of this process.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use async_nats::ServerAddr;

/// The address of the bus and the identity of this process.
#[derive(Debug, Clone)]
pub struct BusConfig {
    /// One or several server addresses, separated by commas, e.g. `nats://127.0.0.1:4222`.
    pub url: String,
    /// Credentials of this process; absent = anonymous.
    pub credentials: Option<Credentials>,
    /// First token of every subject, `mesh` unless several meshes share one bus.
    pub prefix: String,
    /// Name of the connection and of the service in listings of the bus, e.g. `query`.
    pub name: String,
    /// Version in listings of the bus (semantic version).
    pub version: String,
    /// File with the certificates (PEM) that the server's certificate is checked with, over TLS; absent =
    /// TLS only when the server requires it, with the certificate authorities of this machine.
    pub tls_ca: Option<PathBuf>,
}

impl BusConfig {
    /// The user in the names of the inboxes: that of the password, or `name` with other credentials.
    pub(crate) fn user(&self) -> &str {
        match &self.credentials {
            Some(Credentials::Password { user, .. }) if is_token(user) => user,
            _ => &self.name,
        }
    }
}

/// Checks the addresses of the bus.
///
/// # Errors
/// What is wrong with one of them; contains no password.
pub fn check_url(url: &str) -> Result<(), String> {
    for address in url.split(',').map(str::trim) {
        let server = address.parse::<ServerAddr>().map_err(|error| error.to_string())?;
        if server.host().is_empty() || !matches!(server.scheme(), "nats" | "tls") {
            return Err("write it as nats://host:port or tls://host:port, several with commas".to_owned());
        }
    }
    Ok(())
}

/// Checks the beginning of all subjects.
///
/// # Errors
/// When the bus refuses subjects that begin with it.
pub fn check_prefix(prefix: &str) -> Result<(), String> {
    let is_wrong = |letter: char| letter.is_whitespace() || letter.is_control() || "*>\"\\".contains(letter);
    match prefix.split('.').any(|token| token.is_empty() || token.contains(is_wrong)) {
        true => Err("write it without spaces, quotes, *, > and empty parts between dots".to_owned()),
        false => Ok(()),
    }
}

/// Whether a text can be a token of a subject.
fn is_token(text: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    !text.is_empty() && text.chars().all(is_allowed)
}

/// Credentials. The debug form shows no secret.
#[derive(Clone)]
pub enum Credentials {
    /// A user and a password.
    Password {
        /// User name.
        user: String,
        /// Password.
        password: String,
    },
    /// The text of a NATS credentials file (JWT and seed).
    Jwt(String),
}

impl Credentials {
    /// Reads a credentials file: either `user:password` in one line, or NATS's own `.creds` form.
    ///
    /// # Errors
    /// When the file cannot be read or holds neither form.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(path)?;
        if text.contains("BEGIN NATS USER JWT") {
            return Ok(Self::Jwt(text));
        }
        match text.trim_start_matches('\u{feff}').trim().split_once(':') {
            Some((user, password)) => {
                Ok(Self::Password { user: user.to_owned(), password: password.to_owned() })
            }
            None => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "neither `user:password` nor a .creds file"))
            }
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_prefixes_that_the_bus_takes_are_accepted() {
        for good in ["nats://127.0.0.1:4222", "a:4222, tls://b", "nats://user:p@[::1]:1"] {
            assert_eq!(check_url(good), Ok(()), "{good}");
        }
        for bad in ["nats://a:canary", "http://a:4222", "ws://a", "nats://", "a,", "nats://a b"] {
            let error = check_url(bad).unwrap_err();
            assert!(!error.contains("canary"), "{error}");
        }
        assert!(["mesh", "prod.mesh", "m-1_x"].iter().all(|good| check_prefix(good).is_ok()));
        assert!(
            ["a b", "a.*", ">", "a..b", ".a", "a.", "a\"", "a\n"]
                .iter()
                .all(|bad| check_prefix(bad).is_err())
        );
    }

    #[test]
    fn a_password_file_may_begin_with_a_byte_order_mark() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "\u{feff}edge:secret\r\n").unwrap();
        let read = Credentials::read(file.path()).unwrap();
        assert!(
            matches!(read, Credentials::Password { user, password } if user == "edge" && password == "secret")
        );
    }
}
