//! HTTP clients of the command line.

use reqwest::{Client, ClientBuilder, Url};

/// Begins a client for this address. The system's certificates are read only where TLS needs them.
pub(crate) fn client_for(url: &Url) -> ClientBuilder {
    match url.scheme() {
        "https" => Client::builder(),
        _ => Client::builder().tls_certs_only([]),
    }
}

/// Begins a client for processes of this machine, which it asks past any proxy.
pub(crate) fn local_client() -> ClientBuilder {
    Client::builder().no_proxy().tls_certs_only([])
}
