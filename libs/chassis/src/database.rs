//! The addresses of the database. The password may be in a file, so that the addresses are no secrets.

use std::fs;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::Env;

/// The file with the password.
const PASSWORD_FILE: &str = "MESH_DATABASE_PASSWORD_FILE";

/// The addresses of the database, including the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Database {
    /// The primary.
    pub url: String,
    /// A replica, when there is one.
    pub replica_url: Option<String>,
}

/// Checks an address; the error contains no part of it.
pub type AddressCheck = fn(&str) -> Result<(), String>;

impl Database {
    /// Reads `MESH_DATABASE_URL`, which is required, and `MESH_DATABASE_REPLICA_URL`. The password in the
    /// file `MESH_DATABASE_PASSWORD_FILE`, when it is set, is added to both.
    pub fn read(env: &mut Env, check: AddressCheck) -> Self {
        let url = Self::read_primary(env, check);
        let replica_url = env.optional("MESH_DATABASE_REPLICA_URL");
        let replica_url = replica_url.map(|url| complete(env, "MESH_DATABASE_REPLICA_URL", url, check));
        Self { url, replica_url }
    }

    /// Reads the address of the primary alone, for services that write.
    pub fn read_primary(env: &mut Env, check: AddressCheck) -> String {
        let url = env.required("MESH_DATABASE_URL");
        complete(env, "MESH_DATABASE_URL", url, check)
    }
}

/// Checks the address in a variable, and adds the password of the file, if there is one.
fn complete(env: &mut Env, name: &str, url: String, check: AddressCheck) -> String {
    // A missing address has been reported already.
    let file = env.optional(PASSWORD_FILE);
    if url.is_empty() {
        return url;
    }
    let mistakes = env.mistakes().len();
    env.check(name, check(&url));
    let Some(file) = file.filter(|_| env.mistakes().len() == mistakes) else { return url };
    let password = match fs::read_to_string(file) {
        Ok(password) => password,
        Err(error) => {
            env.mistake(format!("{PASSWORD_FILE} cannot be read: {error}"));
            return url;
        }
    };
    let password = password.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']);
    let password = utf8_percent_encode(password, NON_ALPHANUMERIC).to_string();
    with_password(&url, &password).unwrap_or_else(|mistake| {
        env.mistake(format!("{name} {mistake}"));
        url
    })
}

/// Adds a percent-encoded password to an address. Errors do not contain the address.
fn with_password(url: &str, password: &str) -> Result<String, String> {
    let form = || format!("must be written as postgresql://user@host:port/database with {PASSWORD_FILE}");
    let (scheme, rest) = url.split_once("://").ok_or_else(form)?;
    let authority = rest.find(['/', '?']).map_or(rest, |end| &rest[..end]);
    let (user, _) = authority.rsplit_once('@').ok_or_else(form)?;
    match user.contains(':') {
        true => Err(format!("already contains a password, in addition to {PASSWORD_FILE}")),
        false => Ok(format!("{scheme}://{user}:{password}{}", &rest[user.len()..])),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> (Database, Vec<String>) {
        let mut env =
            Env::of(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let check = |url: &str| if url == "?" { Err("it is no address".to_owned()) } else { Ok(()) };
        let database = Database::read(&mut env, check);
        (database, env.mistakes().to_vec())
    }

    #[test]
    fn a_password_file_completes_both_addresses() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all("\u{feff}p@ss/w%rd:\n".as_bytes()).unwrap();
        let file = file.path().to_str().unwrap();
        let (database, mistakes) = read(&[
            ("MESH_DATABASE_URL", "postgresql://query@a:5432,b/mesh?sslmode=require"),
            ("MESH_DATABASE_REPLICA_URL", "postgres://query@c"),
            (PASSWORD_FILE, file),
        ]);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        assert_eq!(database.url, "postgresql://query:p%40ss%2Fw%25rd%3A@a:5432,b/mesh?sslmode=require");
        assert_eq!(database.replica_url.as_deref(), Some("postgres://query:p%40ss%2Fw%25rd%3A@c"));
    }

    #[test]
    fn addresses_stay_as_they_are_without_one() {
        let (database, mistakes) = read(&[("MESH_DATABASE_URL", "host=a password=b")]);
        assert_eq!((database.url.as_str(), database.replica_url), ("host=a password=b", None));
        assert!(mistakes.is_empty());
    }

    #[test]
    fn what_cannot_be_completed_is_a_mistake_without_a_secret_in_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let there = file.path().to_str().unwrap();
        for (url, file, expected) in [
            ("postgresql://query:canary@a/mesh", there, "already contains a password"),
            ("host=canary", there, "must be written as"),
            ("postgresql://canary/mesh", there, "must be written as"),
            ("postgresql://query@a/mesh", "/nonexistent", "cannot be read"),
            ("?", there, "MESH_DATABASE_URL cannot be read: it is no address"),
        ] {
            let (_, mistakes) = read(&[("MESH_DATABASE_URL", url), (PASSWORD_FILE, file)]);
            assert_eq!(mistakes.len(), 1, "{mistakes:?}");
            assert!(mistakes[0].contains(expected) && !mistakes[0].contains("canary"), "{mistakes:?}");
        }
        assert_eq!(read(&[(PASSWORD_FILE, there)]).1, ["MESH_DATABASE_URL is not set"]);
    }
}
