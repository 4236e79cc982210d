//! Secrets that no output may show. The testbed registers every credential that it gives to a service, a test
//! those that it sends itself, and in every test the testbed searches the services' logs, answers and telemetry for them.

use std::{collections::BTreeSet, fs};

use parking_lot::Mutex;

/// Shorter secrets would be found by chance.
const SHORTEST: usize = 8;

static KNOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Registers the secrets in a service's variable: the password of an address, a file's credentials, a
/// header's value.
pub(crate) fn register(variable: &str, value: &str) {
    if let Some(password) = password_of(value) {
        keep_secret(password);
    }
    match variable {
        "MESH_BUS_CREDENTIALS" => {
            let text = fs::read_to_string(value).unwrap_or_default();
            if let Some((_, password)) = text.trim().split_once(':') {
                keep_secret(password);
            }
        }
        "OTEL_EXPORTER_OTLP_HEADERS" => {
            value
                .split(',')
                .filter_map(|pair| pair.split_once('='))
                .for_each(|(_, value)| keep_secret(value));
        }
        _ => {}
    }
}

/// Panics when these bytes contain a secret; the message names the source `what` and not the secret.
pub(crate) fn assert_not_in(what: &str, bytes: &[u8]) {
    assert!(!are_in(bytes), "{what} shows a credential");
}

/// Whether these bytes contain a secret.
pub(crate) fn are_in(bytes: &[u8]) -> bool {
    let known = KNOWN.lock();
    known.iter().any(|secret| memchr::memmem::find(bytes, secret.as_bytes()).is_some())
}

/// The password in `scheme://user:password@host`.
fn password_of(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let (user, _) = rest.split('/').next()?.rsplit_once('@')?;
    Some(user.split_once(':')?.1)
}

/// Registers a secret, unless it is too short.
pub fn keep_secret(secret: &str) {
    if secret.len() >= SHORTEST {
        KNOWN.lock().insert(secret.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_in_addresses() {
        assert_eq!(password_of("postgres://mesh:se:cr@t@127.0.0.1:5432/x@y"), Some("se:cr@t"));
        assert_eq!(password_of("nats://127.0.0.1:4222"), None);
        assert_eq!(password_of("http://token@host/"), None);
    }

    #[test]
    fn registered_secrets_must_not_show() {
        register("MESH_NODE_URL", "http://user:canary-of-this-test@127.0.0.1:1/");
        register("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20canary-in-a-header,x=short");
        assert_not_in("a log", b"the node at 127.0.0.1 is unreachable; short");
        for shown in ["http://user:canary-of-this-test@", "Bearer%20canary-in-a-header"] {
            std::panic::catch_unwind(|| assert_not_in("a log", shown.as_bytes())).unwrap_err();
        }
    }
}
