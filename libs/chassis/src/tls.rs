//! The cryptography provider of TLS, the same in every program.

/// Sets ring as the provider of TLS connections without one of their own, such as those to an object store.
/// To be called at the start of a process; further calls have no effect.
pub fn install_tls_provider() {
    // Fails only when a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
