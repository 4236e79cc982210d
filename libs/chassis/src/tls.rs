//! TLS, the same in every program: its cryptography provider, and the configuration of HTTP clients.

use std::sync::Arc;

use rustls::{ClientConfig, Error, RootCertStore, crypto::ring};

/// Sets ring as the provider of TLS connections without one of their own, such as those to an object store.
/// To be called at the start of a process; further calls have no effect.
pub fn install_tls_provider() {
    // Fails only when a provider is installed already.
    let _ = ring::default_provider().install_default();
}

/// The configuration of a client that trusts the certificates of the system. They are read only when `with_tls`
/// is true; otherwise no server is trusted.
///
/// # Errors
/// When the provider supports no version of TLS.
pub(crate) fn client_tls(with_tls: bool) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    if with_tls {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    Ok(config.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth())
}
