//! The address of a server and how it is authenticated: its URL with the parameters that the driver does not
//! read.
//!
//! `sslmode=require`, `verify-ca` and `verify-full` all mean: over TLS, and the server's certificate is
//! checked together with its name. `sslrootcert` names a file with the accepted authorities (PEM); without
//! it, or with `system`, those of this machine are accepted. Any other `sslmode` means without TLS.

use std::{
    error::Error as _,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use mesh_problem::error_chain;
use percent_encoding::percent_decode_str;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio_postgres::{
    Config, Socket,
    config::{LoadBalanceHosts, SslMode, TargetSessionAttrs},
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The stream of a connection, encrypted when the configuration requires it.
pub(crate) type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The URL does not parse. The reason contains no part of it but names of options.
    #[error("{0}; write it as postgresql://user:password@host:port/database")]
    Url(String),
    /// The certificate authorities cannot be read.
    #[error("cannot read the certificates in {}", path.display())]
    Certificates {
        /// The file, or `system`.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl AddressError {
    /// The driver names an option that it does not know, which in another form may be any part of the address.
    fn of_driver(url: &str, error: &tokio_postgres::Error) -> Self {
        let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
        let cause = error.source().filter(|_| is_url);
        Self::Url(cause.map_or_else(|| "it is no address of a database".to_owned(), ToString::to_string))
    }
}

/// Checks that an address can be read, and the certificates that it names.
///
/// # Errors
/// The reason, which contains no password.
pub fn check_address(url: &str) -> Result<(), String> {
    Address::read(url).map(|_| ()).map_err(|error| error_chain(&error))
}

/// A server's configuration and TLS connector.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) tls: MakeRustlsConnect,
}

impl Address {
    pub(crate) fn read(url: &str) -> Result<Self, AddressError> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut rest, mut mode, mut authorities) = (Vec::new(), None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => {
                    authorities = Some(PathBuf::from(&*percent_decode_str(value).decode_utf8_lossy()));
                }
                _ => rest.push(pair),
            }
        }
        let is_secret = matches!(mode, Some("require" | "verify-ca" | "verify-full"));
        // An unknown mode is passed on to the driver, which refuses it.
        let unknown = mode.filter(|mode| !is_secret && !matches!(*mode, "disable" | "allow" | "prefer"));
        let mode = unknown.map(|mode| format!("sslmode={mode}"));
        rest.extend(mode.as_deref());
        let question = if rest.is_empty() { "" } else { "?" };
        let parsed = format!("{address}{question}{}", rest.join("&")).parse::<Config>();
        let mut config = parsed.map_err(|error| AddressError::of_driver(url, &error))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(AddressError::Url("it names no host".to_owned()));
        }
        // An attempt ends at its time limit, which a frozen first host takes whole: the next one begins elsewhere.
        if config.get_hosts().len() > 1 && config.get_target_session_attrs() != TargetSessionAttrs::Any {
            config.load_balance_hosts(LoadBalanceHosts::Random);
        }
        // In the key-value form of an address, the driver has parsed the mode.
        let is_secret = is_secret || config.get_ssl_mode() == SslMode::Require;
        config.ssl_mode(if is_secret { SslMode::Require } else { SslMode::Disable });
        let authorities = match is_secret {
            true => trusted(authorities.as_deref())?,
            false => RootCertStore::empty(),
        };
        Ok(Self { config, tls: MakeRustlsConnect::new(client(authorities)) })
    }
}

fn trusted(file: Option<&Path>) -> Result<RootCertStore, AddressError> {
    let path = file.unwrap_or(Path::new("system"));
    let wrong = |source| AddressError::Certificates { path: path.to_owned(), source };
    let certificates: Vec<CertificateDer<'static>> = match path == Path::new("system") {
        true => rustls_native_certs::load_native_certs().certs,
        false => {
            let text = std::fs::read(path).map_err(wrong)?;
            let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>();
            certificates.map_err(|error| wrong(io::Error::other(error.to_string())))?
        }
    };
    let mut authorities = RootCertStore::empty();
    let (known, _) = authorities.add_parsable_certificates(certificates);
    match known {
        0 => Err(wrong(io::Error::other("there is no certificate in it"))),
        _ => Ok(authorities),
    }
}

fn client(authorities: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.expect("the provider speaks them");
    versions.with_root_certificates(authorities).with_no_client_auth()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> SslMode {
        Address::read(url).unwrap_or_else(|error| panic!("{url}: {error}")).config.get_ssl_mode()
    }

    #[test]
    fn tls_is_used_only_when_configured() {
        assert_eq!(mode("postgres://a:b@h/d"), SslMode::Disable);
        assert_eq!(mode("postgres://a:b@h/d?sslmode=prefer&connect_timeout=3"), SslMode::Disable);
        assert_eq!(mode("host=h user=a"), SslMode::Disable);
        assert_eq!(mode("host=h user=a sslmode=require"), SslMode::Require);
        assert!(matches!(Address::read("postgres://h/d?sslmode=verify"), Err(AddressError::Url(_))));
    }

    #[test]
    fn what_is_wrong_is_named_without_a_secret() {
        for (url, expected) in [
            ("canary", "no address"),
            ("postgre://a:canary@h/d?x=1", "no address"),
            ("postgres://a:canary@h:port/d", "invalid value for option `port`"),
            ("postgres://a:canary@h/d?colour=1", "unknown option `colour`"),
            ("postgres:///d", "no host"),
        ] {
            let error = check_address(url).unwrap_err();
            assert!(error.contains(expected) && !error.contains("canary"), "{url}: {error}");
        }
    }

    #[test]
    fn authorities_that_are_not_there_are_named() {
        for file in ["/no/such/file", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")] {
            let url = format!("postgres://h/d?sslmode=verify-full&sslrootcert={}", file.replace('/', "%2F"));
            let error = Address::read(&url).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(file), "{error}");
        }
    }
}
