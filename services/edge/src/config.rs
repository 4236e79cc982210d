//! Configuration of the `edge` workload; the table is in its README.

use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use http::uri::Authority;
use mesh_chassis::{Env, LagLimit, PageLimits, Sampler};
use proto_msgs::OperationInfo;

use crate::{client_address::TrustedProxies, wire::tls::TlsFiles};

/// Default burst, in seconds of the rate.
const BURST_S: NonZeroU32 = NonZeroU32::new(5).unwrap();

/// Time for the bus in addition to the service's own.
const BUS_TIME: Duration = Duration::from_millis(250);

/// A client that reads nothing of its response for this long is disconnected (contract section 7).
pub(crate) const STALL_TIMEOUT: Duration = Duration::from_secs(120);

/// A client that confirms nothing for this long, neither sent bytes nor an HTTP/2 ping, is lost. The ping waits behind
/// all bytes that a slow client has not read, so [`STALL_TIMEOUT`] applies first where it can.
pub(crate) const UNCONFIRMED_TIMEOUT: Duration = STALL_TIMEOUT.saturating_add(Duration::from_secs(30));

/// Requests of one HTTP/2 connection at the same time.
pub(crate) const HTTP2_STREAMS: u32 = 128;

/// Most headers of a request; hyper enforces it.
pub(crate) const MAX_HEADERS: u32 = 100;

/// Which requests get an access log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessLogMode {
    Off,
    /// Those with a status of 400 or more, a gRPC status other than OK, or an incomplete answer.
    Errors,
    All,
}

impl FromStr for AccessLogMode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "errors" => Ok(Self::Errors),
            "all" => Ok(Self::All),
            _ => Err("it is off, errors or all"),
        }
    }
}

/// See the README's table.
#[derive(Debug)]
pub(crate) struct Config {
    /// Where HTTP is served, unless a listening socket named `http` is inherited.
    pub(crate) listen: SocketAddr,
    /// A second address for gRPC clients, unless a listening socket named `grpc` is inherited.
    pub(crate) grpc_listen: Option<SocketAddr>,
    /// The certificate of both addresses; `None` = plain connections.
    pub(crate) tls: Option<TlsFiles>,
    /// The file of the clients' keys; `None` = no keys.
    pub(crate) keys_file: Option<PathBuf>,
    /// Whether clients without a key get data.
    pub(crate) is_anonymous_allowed: bool,
    /// How long a shared cache may keep an answer that may change with every block, seconds; 0 = not at all.
    pub(crate) shared_max_age_s: u32,
    /// Names of the inherited sockets in order (systemd's `LISTEN_FDNAMES`).
    pub(crate) inherited_sockets: Vec<String>,
    /// Allowed origins; `*` = all.
    pub(crate) cors_origins: Vec<String>,
    /// Bytes for cached answers; 0 = no cache.
    pub(crate) cache_bytes: u64,
    /// Bytes for long answers and bodies that are being sent, received or watched, besides the cache.
    pub(crate) answer_bytes: u64,
    /// The edge is unready when the store lags more than this.
    pub(crate) lag: LagLimit,
    /// Page sizes of the services, for `/limits`.
    pub(crate) rows: PageLimits,
    /// Which requests are traced.
    pub(crate) sampling: Sampler,
    /// Trusted proxies, whose `X-Forwarded-For` is used.
    pub(crate) proxies: TrustedProxies,
    /// Request rate of one address; `None` = unlimited.
    pub(crate) rate: Option<RateLimit>,
    /// Downloads of one address at the same time; `None` = unlimited.
    pub(crate) exports_per_address: Option<NonZeroUsize>,
    /// Watches at the same time (contract W8).
    pub(crate) watches: usize,
    /// Watches of one address at the same time; `None` = unlimited.
    pub(crate) watches_per_address: Option<NonZeroUsize>,
    /// Which requests get an access log line.
    pub(crate) access_log: AccessLogMode,
    pub(crate) limits: Limits,
}

/// The request rate of an address or of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RateLimit {
    pub(crate) per_s: NonZeroU32,
    /// Requests at once.
    pub(crate) burst: NonZeroU32,
}

/// Limits of requests and connections (contract section 7).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Request body, bytes.
    pub(crate) body_bytes: usize,
    /// Path and query, bytes.
    pub(crate) url_bytes: usize,
    /// Header block, bytes.
    pub(crate) head_bytes: usize,
    /// Connections at the same time.
    pub(crate) connections: usize,
    /// Requests in flight at the same time.
    pub(crate) in_flight: usize,
    /// For a request head, from connecting or from its first byte.
    pub(crate) head_time: Duration,
    /// For a whole request body.
    pub(crate) body_time: Duration,
    /// Between two pieces of a request body.
    pub(crate) body_idle: Duration,
    /// For the next request on an open connection.
    pub(crate) idle: Duration,
    /// For the answer of a service.
    pub(crate) answer_time: Duration,
}

impl Config {
    /// The scheme of the addresses that clients use here.
    pub(crate) fn url_scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// An origin in the form in which browsers send it; `None` if they send none of this.
fn origin(text: &str) -> Option<String> {
    if matches!(text, "*" | "null") {
        return Some(text.to_owned());
    }
    let (scheme, authority) = text.strip_suffix('/').unwrap_or(text).split_once("://")?;
    let authority: Authority = authority.parse().ok()?;
    let is_default = matches!((scheme, authority.port_u16()), ("http", Some(80)) | ("https", Some(443)));
    let host = if is_default { authority.host() } else { authority.as_str() };
    let is_host = !host.is_empty() && !host.contains(['@', '*']);
    (is_host && !scheme.is_empty()).then(|| format!("{scheme}://{host}").to_ascii_lowercase())
}

impl mesh_chassis::Config for Config {
    fn read(env: &mut Env) -> Self {
        let cors_origins = cors_origins(env);
        let inherited = env.optional("LISTEN_FDNAMES").unwrap_or_default();
        let grpc_listen = grpc_listen(env);
        let tls = tls_files(env);
        let keys_file = env.optional("MESH_EDGE_KEYS_FILE").map(PathBuf::from);
        let is_anonymous_allowed = env.flag("MESH_EDGE_ANONYMOUS", true);
        if keys_file.is_none() && !is_anonymous_allowed {
            env.mistake("MESH_EDGE_ANONYMOUS=off needs MESH_EDGE_KEYS_FILE");
        }
        let limits = Limits::read(env);
        Self {
            grpc_listen,
            keys_file,
            is_anonymous_allowed,
            tls,
            shared_max_age_s: env.or("MESH_EDGE_SHARED_MAX_AGE_S", 0),
            inherited_sockets: inherited
                .split(':')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
            listen: env.or("MESH_EDGE_LISTEN", SocketAddr::from(([127, 0, 0, 1], 8080))),
            cors_origins,
            cache_bytes: env.or("MESH_EDGE_CACHE_BYTES", 64 << 20),
            answer_bytes: answer_bytes(env, limits.body_bytes),
            lag: LagLimit::read(env),
            rows: PageLimits::read(env),
            sampling: Sampler::read(env),
            proxies: env.or("MESH_EDGE_TRUSTED_PROXIES", TrustedProxies::default()),
            rate: RateLimit::read(env),
            exports_per_address: NonZeroUsize::new(env.or("MESH_EDGE_EXPORTS_PER_ADDRESS", 0)),
            watches: env.or("MESH_EDGE_WATCHES", 20_000),
            watches_per_address: NonZeroUsize::new(env.or("MESH_EDGE_WATCHES_PER_ADDRESS", 0)),
            access_log: env.or("MESH_EDGE_ACCESS_LOG", AccessLogMode::Off),
            limits,
        }
    }
}

fn cors_origins(env: &mut Env) -> Vec<String> {
    let origins = env.or("MESH_EDGE_CORS_ORIGINS", "*".to_owned());
    let origins = origins.split(',').map(str::trim).filter(|text| !text.is_empty());
    let origins = origins.filter_map(|text| {
        origin(text).or_else(|| {
            env.mistake(format!("MESH_EDGE_CORS_ORIGINS: {text} is not * or scheme://host[:port]"));
            None
        })
    });
    origins.collect()
}

fn grpc_listen(env: &mut Env) -> Option<SocketAddr> {
    match env.or("MESH_EDGE_GRPC_LISTEN", String::new()) {
        address if address.is_empty() => None,
        address => {
            address.parse().map_err(|_| env.mistake("MESH_EDGE_GRPC_LISTEN is not an address and port")).ok()
        }
    }
}

fn tls_files(env: &mut Env) -> Option<TlsFiles> {
    let [certificate, key] =
        ["MESH_EDGE_TLS_CERT", "MESH_EDGE_TLS_KEY"].map(|name| env.optional(name).map(PathBuf::from));
    if certificate.is_some() != key.is_some() {
        env.mistake("MESH_EDGE_TLS_CERT and MESH_EDGE_TLS_KEY are given together, or neither");
    }
    certificate.zip(key).map(|(certificate, key)| TlsFiles { certificate, key })
}

/// The bytes for long answers and bodies: room for some of the longest bodies.
fn answer_bytes(env: &mut Env, longest_body: usize) -> u64 {
    let bytes = env.or("MESH_EDGE_ANSWER_BYTES", 256 << 20);
    let least = 4 * longest_body as u64;
    if bytes < least {
        env.mistake(format!(
            "MESH_EDGE_ANSWER_BYTES must be at least {least}, four times MESH_EDGE_MAX_BODY_BYTES"
        ));
    }
    bytes
}

impl RateLimit {
    /// A rate with this burst; without one with the default.
    pub(crate) fn new(per_s: NonZeroU32, burst: Option<u32>) -> Self {
        let burst = burst.and_then(NonZeroU32::new).unwrap_or_else(|| Self::default_burst(per_s));
        Self { per_s, burst }
    }

    /// The burst of a rate without one of its own.
    fn default_burst(per_s: NonZeroU32) -> NonZeroU32 {
        per_s.saturating_mul(BURST_S)
    }

    fn read(env: &mut Env) -> Option<Self> {
        let per_s = NonZeroU32::new(env.or("MESH_EDGE_RATE_PER_S", 0));
        let default_burst = per_s.map_or(1, |per_s| Self::default_burst(per_s).get());
        let burst = NonZeroU32::new(env.or("MESH_EDGE_RATE_BURST", default_burst));
        if burst.is_none() {
            env.mistake("MESH_EDGE_RATE_BURST must be at least 1");
        }
        Some(Self { per_s: per_s?, burst: burst? })
    }
}

impl Limits {
    /// Time for a query in a service.
    pub(crate) fn query_time(&self) -> Duration {
        self.answer_time.saturating_sub(BUS_TIME)
    }

    /// Time for the answer of an operation.
    pub(crate) fn answer_time_of(&self, operation: &OperationInfo) -> Duration {
        operation.answer_within.map_or(self.answer_time, |within| within + BUS_TIME)
    }

    /// By default those of the contract, and of what it leaves open.
    fn read(env: &mut Env) -> Self {
        Self {
            body_bytes: env.positive("MESH_EDGE_MAX_BODY_BYTES", 2 << 20),
            url_bytes: 8 << 10,
            head_bytes: 16 << 10,
            connections: env.positive("MESH_EDGE_CONNECTIONS", 16_384),
            in_flight: env.positive("MESH_EDGE_IN_FLIGHT", 4096),
            head_time: env.milliseconds("MESH_EDGE_HEAD_TIMEOUT_MS", 10_000),
            body_time: env.milliseconds("MESH_EDGE_BODY_TIMEOUT_MS", 30_000),
            body_idle: env.milliseconds("MESH_EDGE_BODY_IDLE_MS", 10_000),
            idle: env.milliseconds("MESH_EDGE_IDLE_TIMEOUT_MS", 60_000),
            answer_time: env.milliseconds("MESH_QUERY_TIMEOUT_MS", 10_000) + BUS_TIME,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_that_of_a_browser() {
        for (text, expected) in [
            ("*", Some("*")),
            ("https://A.example/", Some("https://a.example")),
            ("https://a.example:443", Some("https://a.example")),
            ("http://[::1]:8080", Some("http://[::1]:8080")),
            ("chrome-extension://abc", Some("chrome-extension://abc")),
            ("a.example", None),
            ("https://*.example", None),
            ("https://a.example/path", None),
            ("https://", None),
        ] {
            assert_eq!(origin(text).as_deref(), expected, "{text}");
        }
    }
}
