//! Admission control: the key or the address that limits count a client by, its request rate, and permits for
//! connections, requests and downloads.

pub(crate) mod client_limit;
pub(crate) mod fair_semaphore;
pub(crate) mod head;
pub(crate) mod open_files;
pub(crate) mod rate_limiter;
pub(crate) mod rejection;

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{HeaderMap, Request, Version};
use mesh_problem::Problem;

use crate::{
    admission::{
        client_limit::{ClientLimit, ClientPermit},
        fair_semaphore::{FairSemaphore, Owner, Permit, Rejected},
        head::is_preflight,
        rate_limiter::{RateLimitStatus, RateLimiter},
    },
    client_address::{Address, ClientId, TrustedProxies},
    config::Config,
    connection::ConnectionState,
    grpc_kind::is_grpc,
    keys::{KeyInUse, KeyRefusal, Keys},
    metrics::{LimitKind, Metrics},
    route::routes::Routes,
};

/// What limits a request: its connection, its client, and that client's rate.
#[derive(Clone, Debug)]
pub(crate) struct ClientContext {
    pub(crate) connection: Arc<ConnectionState>,
    address: Address,
    /// Whom the request counts for.
    pub(crate) id: ClientId,
    /// The key that it was sent with.
    pub(crate) key: Option<KeyInUse>,
    refusal: Option<KeyRefusal>,
    /// `None` when rates are not limited.
    pub(crate) rate: Option<RateLimitStatus>,
}

impl ClientContext {
    /// Whether the request is refused by its key or exceeds its client's rate.
    pub(crate) fn is_refused(&self) -> bool {
        self.refusal.is_some() || self.rate.is_some_and(|rate| rate.is_over())
    }

    /// Checks that the client may send requests.
    ///
    /// # Errors
    /// When its key is not in force, or it sent several.
    pub(crate) fn check_key(&self) -> Result<(), Problem> {
        match self.refusal {
            None | Some(KeyRefusal::Missing) => Ok(()),
            Some(refusal) => Err(refusal.problem()),
        }
    }

    /// Checks that the client may call operations.
    ///
    /// # Errors
    /// Those of [`check_key`](Self::check_key), and when it has no key where one is needed.
    pub(crate) fn check_access(&self) -> Result<(), Problem> {
        self.refusal.map_or(Ok(()), |refusal| Err(refusal.problem()))
    }

    /// The body of its request, counted for its key.
    pub(crate) fn metered<E, S: Stream<Item = Result<Bytes, E>>>(
        &self,
        body: S,
    ) -> impl Stream<Item = Result<Bytes, E>> + use<E, S> {
        let meter = self.key.as_ref().map(|key| Arc::clone(&key.meter));
        body.inspect(move |piece| {
            if let (Some(meter), Ok(piece)) = (&meter, piece) {
                meter.receive(piece.len());
            }
        })
    }
}

/// The permit of a connection, until it is closed.
pub(crate) enum ConnectionPermit {
    /// Counted for the address of the peer.
    Client(#[expect(dead_code, reason = "held for its drop")] Permit<1>),
    /// Of a trusted proxy, which is not limited to a share because it serves many clients.
    Proxy(#[expect(dead_code, reason = "held for its drop")] Permit<0>),
}

/// The operation of a request that no route matches, in logs, metrics and usage records.
pub(crate) const NO_OPERATION: &str = "none";

/// The limits on connections, requests and downloads of one edge.
pub(crate) struct Admission {
    proxies: TrustedProxies,
    /// `None` without a file of keys.
    keys: Option<Keys>,
    is_anonymous_allowed: bool,
    routes: Arc<Routes>,
    rate: Option<RateLimiter>,
    /// With TLS, the rate of connections: a handshake costs more than most requests.
    handshakes: Option<RateLimiter>,
    connections: Arc<FairSemaphore>,
    requests: Arc<FairSemaphore>,
    downloads: ClientLimit,
    metrics: Metrics,
}

impl Admission {
    /// The limits of the configuration.
    pub(crate) fn new(config: &Config, keys: Option<Keys>, routes: Arc<Routes>, metrics: &Metrics) -> Self {
        Self {
            proxies: config.proxies.clone(),
            keys,
            is_anonymous_allowed: config.is_anonymous_allowed,
            routes,
            rate: config.rate.map(RateLimiter::new),
            handshakes: config.tls.as_ref().and(config.rate).map(RateLimiter::new),
            connections: FairSemaphore::new(config.limits.connections),
            requests: FairSemaphore::new(config.limits.in_flight),
            downloads: ClientLimit::downloads(config.exports_per_address),
            metrics: metrics.clone(),
        }
    }

    /// A permit for a connection from this peer.
    ///
    /// # Errors
    /// The reason in the metrics: no permit is free, the peer holds its share, or it exceeds the rate of handshakes.
    pub(crate) fn connection(&self, peer: IpAddr) -> Result<ConnectionPermit, &'static str> {
        let address = Address::from(peer);
        let permit = if self.proxies.contains(peer) {
            self.connections.try_acquire([]).map(ConnectionPermit::Proxy).map_err(Rejected::reason)
        } else if self.handshakes.as_ref().is_some_and(|rate| rate.count(address).is_over()) {
            Err("rate")
        } else {
            let owner = Owner::Client(ClientId::Address(address));
            self.connections.try_acquire([owner]).map(ConnectionPermit::Client).map_err(Rejected::reason)
        };
        permit.inspect_err(|reason| self.count_rejected_connection(reason))
    }

    /// Counts a connection that is rejected.
    pub(crate) fn count_rejected_connection(&self, reason: &'static str) {
        self.metrics.refused_connection(reason).inc();
    }

    /// The address of a request's client, by peer and headers.
    pub(crate) fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        self.proxies.client(peer, headers)
    }

    /// Identifies the client of a request and counts the request against its rate. A request with a key that is not
    /// in force counts for the address. `operation`: its operation, where it is known already.
    pub(crate) fn identify<B>(
        &self,
        connection: &Arc<ConnectionState>,
        peer: IpAddr,
        request: &Request<B>,
        operation: Option<&'static str>,
    ) -> ClientContext {
        let headers = request.headers();
        let address = Address::from(self.proxies.client(peer, headers));
        let find_operation = || {
            let is_grpc = request.version() == Version::HTTP_2 && is_grpc(request.method(), headers);
            self.routes.operation_name(request.uri().path(), is_grpc).unwrap_or(NO_OPERATION)
        };
        let (key, refusal) = match self
            .keys
            .as_ref()
            .map(|keys| keys.of_request(headers, || operation.unwrap_or_else(find_operation)))
        {
            Some(Ok(Some(key))) => (Some(key), None),
            Some(Err(refusal)) => (None, Some(refusal)),
            _ => (None, (!self.is_anonymous_allowed).then_some(KeyRefusal::Missing)),
        };
        let rate =
            if is_preflight(request.method(), headers) { None } else { self.count(address, key.as_ref()) };
        let id = key.as_ref().map_or(ClientId::Address(address), |key| ClientId::Key(key.key.number()));
        ClientContext { connection: Arc::clone(connection), address, id, key, refusal, rate }
    }

    /// Gives up this edge's share of the keys' limits.
    pub(crate) async fn leave(&self) {
        if let Some(keys) = &self.keys {
            keys.leave().await;
        }
    }

    /// Writes the last records of what the keys have used.
    pub(crate) async fn finish(&self) {
        if let Some(keys) = &self.keys {
            keys.finish().await;
        }
    }

    /// Counts a further request of a client against its rate.
    ///
    /// # Errors
    /// When its key is in force no longer.
    pub(crate) fn count_again(&self, client: &ClientContext) -> Result<ClientContext, Problem> {
        let key = match (&self.keys, &client.key) {
            (Some(keys), Some(key)) => Some(keys.again(key).map_err(KeyRefusal::problem)?),
            _ => None,
        };
        let rate = self.count(client.address, key.as_ref());
        Ok(ClientContext { key, rate, ..client.clone() })
    }

    /// Counts a request against the rate of its key or address.
    fn count(&self, address: Address, key: Option<&KeyInUse>) -> Option<RateLimitStatus> {
        let of_address = || self.rate.as_ref().map(|rate| rate.count(address));
        match key {
            Some(key) => key.count(of_address),
            None => of_address(),
        }
    }

    /// Checks the rate of a request's client, and counts a refusal.
    ///
    /// # Errors
    /// When the request is over it.
    pub(crate) fn check_rate(&self, client: &ClientContext) -> Result<(), Problem> {
        let Some(problem) = client.rate.and_then(|rate| rate.refusal()) else { return Ok(()) };
        self.metrics.limited(LimitKind::Rate).inc();
        Err(problem)
    }

    /// A permit for a request that is being answered.
    ///
    /// # Errors
    /// When no permit is free, or address or operation holds its share.
    pub(crate) fn request(
        &self,
        client: &ClientContext,
        operation: &'static str,
    ) -> Result<Permit<3>, Problem> {
        let owners =
            [Owner::Client(client.id), Owner::Operation(operation), Owner::Part(client.id, operation)];
        self.requests.try_acquire(owners).map_err(|rejected| {
            self.metrics.shed(rejected.reason()).inc();
            Problem::unavailable(match rejected {
                Rejected::Full => "too many requests are being answered",
                Rejected::Share(Owner::Client(_)) => "too many requests of this client are being answered",
                Rejected::Share(Owner::Operation(_)) => "too many requests of this kind are being answered",
                Rejected::Share(Owner::Part(..)) => {
                    "too many requests of this kind and client are being answered"
                }
            })
        })
    }

    /// A permit for a download.
    ///
    /// # Errors
    /// When the client has as many downloads as allowed.
    pub(crate) fn download(&self, client: &ClientContext) -> Result<ClientPermit, Problem> {
        self.downloads.permit(client).inspect_err(|_| {
            self.metrics.limited(LimitKind::Downloads).inc();
        })
    }
}
