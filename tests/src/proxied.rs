//! A server behind a fault proxy whose connections can be cut, refused, stalled and restored.

use mesh_proxy::{Cut, Line, Proxy};

/// The server of a URL behind its own proxy. Dropping it cuts all connections.
#[derive(Debug)]
pub struct ProxiedServer {
    proxy: Proxy,
    server: String,
    url: String,
}

impl ProxiedServer {
    /// Starts a proxy in front of the server of a URL, whose host must be an IP address with a port.
    pub async fn start(url: &str) -> Self {
        let server = authority(url).to_owned();
        let address = server.parse().unwrap_or_else(|error| panic!("{server} is no address: {error}"));
        let proxy = Proxy::start(address, 0).await;
        let proxy = proxy.unwrap_or_else(|error| panic!("the proxy does not start: {error}"));
        let url = url.replace(&server, &proxy.address().to_string());
        Self { proxy, server, url }
    }

    /// Starts a proxy that refuses connections until [`Self::restore`].
    pub async fn start_cut(url: &str) -> Self {
        let proxied = Self::start(url).await;
        proxied.cut();
        proxied
    }

    /// The URL with the proxy's address in place of the server's.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Another URL of the same server (another user or database), with the proxy's address.
    pub fn rewrite(&self, url: &str) -> String {
        url.replace(&self.server, &self.proxy.address().to_string())
    }

    /// Resets all connections and refuses new ones.
    pub fn cut(&self) {
        self.proxy.set(Line { refuses: true, ..Line::default() });
        self.proxy.cut(Cut::Reset);
    }

    /// Number of connections refused so far.
    pub fn refused(&self) -> usize {
        self.proxy.refused()
    }

    /// Keeps connections open and accepts new ones, but forwards nothing.
    pub fn stall(&self) {
        self.proxy.set(Line { stalls: true, ..Line::default() });
    }

    /// Forwards again.
    pub fn restore(&self) {
        self.proxy.set(Line::default());
    }
}

/// Host and port of a URL.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}
