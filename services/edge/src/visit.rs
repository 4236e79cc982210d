//! What is known of a request before anybody reads it: its connection, its client, and how that one stands with its rate.

use std::{net::IpAddr, sync::Arc};

use http::HeaderMap;

use crate::{
    address::{Address, Proxies},
    config::Config,
    connection::ConnectionState,
    rate::{Rate, Standing},
};

/// A request, as the door sees it.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) connection: Arc<ConnectionState>,
    pub(crate) client: Address,
    /// How the client stands, where rates are limited.
    pub(crate) rate: Option<Standing>,
}

impl Visit {
    /// Whether it came too early.
    pub(crate) fn is_over_rate(&self) -> bool {
        self.rate.is_some_and(|rate| rate.is_over())
    }
}

/// Who comes, and how often they may.
pub(crate) struct Visits {
    proxies: Proxies,
    rate: Option<Rate>,
}

impl Visits {
    /// As configured.
    pub(crate) fn new(config: &Config) -> Self {
        let rate = config.rate.map(|rate| Rate::new(rate.per_s, rate.burst));
        Self { proxies: config.proxies.clone(), rate }
    }

    /// Whether a peer is a trusted proxy.
    pub(crate) fn is_proxy(&self, peer: IpAddr) -> bool {
        self.proxies.hold(peer)
    }

    /// Whose request it is, by peer and headers.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        self.proxies.client(peer, headers)
    }

    /// Counts a request that came from this peer.
    pub(crate) fn begin(
        &self,
        connection: &Arc<ConnectionState>,
        peer: IpAddr,
        headers: &HeaderMap,
    ) -> Visit {
        let client = Address::from(self.proxies.client(peer, headers));
        let rate = self.rate.as_ref().map(|rate| rate.count(client));
        Visit { connection: Arc::clone(connection), client, rate }
    }
}
