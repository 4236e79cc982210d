//! Admission control: the address that limits count a client by, its request rate, and permits for connections,
//! requests and downloads.

pub(crate) mod address_limit;
pub(crate) mod fair_semaphore;
pub(crate) mod head;
pub(crate) mod open_files;
pub(crate) mod rate_limiter;
pub(crate) mod rejection;

use std::{net::IpAddr, sync::Arc};

use http::HeaderMap;
use mesh_problem::Problem;

use crate::{
    admission::{
        address_limit::{AddressLimit, AddressPermit},
        fair_semaphore::{FairSemaphore, Owner, Permit, Rejected},
        rate_limiter::{RateLimitStatus, RateLimiter},
    },
    client_address::{Address, TrustedProxies},
    config::Config,
    connection::ConnectionState,
    metrics::{LimitKind, Metrics},
};

/// What limits a request: its connection, the address of its client, and that address' rate.
#[derive(Clone, Debug)]
pub(crate) struct ClientContext {
    pub(crate) connection: Arc<ConnectionState>,
    pub(crate) address: Address,
    /// `None` when rates are not limited.
    pub(crate) rate: Option<RateLimitStatus>,
}

impl ClientContext {
    /// Whether the request exceeds the rate of its address.
    pub(crate) fn is_over_rate(&self) -> bool {
        self.rate.is_some_and(|rate| rate.is_over())
    }
}

/// The permit of a connection, until it is closed.
pub(crate) enum ConnectionPermit {
    /// Counted for the address of the peer.
    Client(#[expect(dead_code, reason = "held for its drop")] Permit<1>),
    /// Of a trusted proxy, which is not limited to a share because it serves many clients.
    Proxy(#[expect(dead_code, reason = "held for its drop")] Permit<0>),
}

/// The limits on connections, requests and downloads of one edge.
pub(crate) struct Admission {
    proxies: TrustedProxies,
    rate: Option<RateLimiter>,
    connections: Arc<FairSemaphore>,
    requests: Arc<FairSemaphore>,
    downloads: AddressLimit,
    metrics: Metrics,
}

impl Admission {
    /// The limits of the configuration.
    pub(crate) fn new(config: &Config, metrics: &Metrics) -> Self {
        Self {
            proxies: config.proxies.clone(),
            rate: config.rate.map(|rate| RateLimiter::new(rate.per_s, rate.burst)),
            connections: FairSemaphore::new(config.limits.connections),
            requests: FairSemaphore::new(config.limits.in_flight),
            downloads: AddressLimit::downloads(config.exports_per_address),
            metrics: metrics.clone(),
        }
    }

    /// A permit for a connection from this peer.
    ///
    /// # Errors
    /// When no permit is free, or the peer holds its share.
    pub(crate) fn connection(&self, peer: IpAddr) -> Result<ConnectionPermit, Rejected> {
        let permit = match self.proxies.contains(peer) {
            true => self.connections.try_acquire([]).map(ConnectionPermit::Proxy),
            false => {
                self.connections.try_acquire([Owner::Address(peer.into())]).map(ConnectionPermit::Client)
            }
        };
        permit.inspect_err(|rejected| self.count_rejected_connection(rejected.reason()))
    }

    /// Counts a connection that is rejected.
    pub(crate) fn count_rejected_connection(&self, reason: &'static str) {
        self.metrics.refused_connection(reason).inc();
    }

    /// The address of a request's client, by peer and headers.
    pub(crate) fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        self.proxies.client(peer, headers)
    }

    /// Identifies the client of a request and counts the request against its rate.
    pub(crate) fn identify(
        &self,
        connection: &Arc<ConnectionState>,
        peer: IpAddr,
        headers: &HeaderMap,
    ) -> ClientContext {
        let address = Address::from(self.proxies.client(peer, headers));
        let rate = self.rate.as_ref().map(|rate| rate.count(address));
        ClientContext { connection: Arc::clone(connection), address, rate }
    }

    /// The refusal of a request over its rate, if it is; counts it.
    pub(crate) fn rate_refusal(&self, client: &ClientContext) -> Option<Problem> {
        let problem = client.rate.and_then(|rate| rate.refusal())?;
        self.metrics.limited(LimitKind::Rate).inc();
        Some(problem)
    }

    /// A permit for a request that is being answered.
    ///
    /// # Errors
    /// When no permit is free, or address or operation holds its share.
    pub(crate) fn request(
        &self,
        client: &ClientContext,
        operation: &'static str,
    ) -> Result<Permit<2>, Problem> {
        let owners = [Owner::Address(client.address), Owner::Operation(operation)];
        self.requests.try_acquire(owners).map_err(|rejected| {
            self.metrics.shed(rejected.reason()).inc();
            Problem::unavailable(match rejected {
                Rejected::Full => "too many requests are being answered",
                Rejected::Share(Owner::Address(_)) => "too many requests of this address are being answered",
                Rejected::Share(Owner::Operation(_)) => "too many requests of this kind are being answered",
            })
        })
    }

    /// A permit for a download.
    ///
    /// # Errors
    /// When the address has as many downloads as allowed.
    pub(crate) fn download(&self, client: &ClientContext) -> Result<AddressPermit, Problem> {
        self.downloads.try_acquire(client.address).inspect_err(|_| {
            self.metrics.limited(LimitKind::Downloads).inc();
        })
    }
}
