//! The cryptography of TLS, the same in every program.

/// Chooses ring for every TLS connection of this process that does not bring its own choice, such as those of
/// the HTTP client to an object store. A process calls it once, where it begins; calling it again changes
/// nothing.
pub fn install_tls_provider() {
    // It is refused only when a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
