//! HTTP clients of the command line.

use reqwest::{Client, ClientBuilder, Url};

/// A client builder for this address. The system's certificates are read for `https` only.
pub(crate) fn client_for(url: &Url) -> ClientBuilder {
    match url.scheme() {
        "https" => Client::builder(),
        _ => Client::builder().tls_certs_only([]),
    }
}

/// A client builder for processes of this machine: no proxy, no certificates.
pub(crate) fn local_client() -> ClientBuilder {
    Client::builder().no_proxy().tls_certs_only([])
}
