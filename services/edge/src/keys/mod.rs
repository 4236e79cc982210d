//! Clients with keys (contract section 12): the keys in force, the edges that share their limits, their use.

pub(crate) mod edges;
pub(crate) mod usage;

use std::{
    collections::HashMap,
    fmt, io,
    num::{NonZeroU32, NonZeroUsize},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use jiff::Timestamp;
use mesh_keys::{KeyDigest, KeyEntry};
use mesh_problem::{Code, MALFORMED, Problem, UNAUTHENTICATED};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use crate::{
    admission::rate_limiter::{KeyRateLimiter, RateLimitStatus},
    config::RateLimit,
    file_follower::FileFollower,
    keys::{
        edges::LiveEdges,
        usage::{KeyMeters, Meter, Usage},
    },
    metrics::{LimitKind, Metrics},
};

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const BEARER: &str = "bearer";

/// Interval at which the end of a key is compared with the clock, which may be set.
const CLOCK_CHECK: Duration = Duration::from_secs(30);

/// Greatest file of keys, bytes.
const MAX_FILE: u64 = 64 << 20;

/// Keys by their digests.
type KeyMap = HashMap<KeyDigest, Arc<ClientKey>>;

/// The keys in force.
pub(crate) struct Keys {
    in_force: Arc<RwLock<KeyMap>>,
    edges: Arc<LiveEdges>,
    usage: Arc<Usage>,
}

/// A key in force.
pub(crate) struct ClientKey {
    name: Arc<str>,
    entry: KeyEntry,
    rate: Limit<KeyRateLimiter>,
    /// Cancelled when the file no longer has the key, or has it with another end.
    removed: CancellationToken,
    meters: KeyMeters,
}

/// A limit of a key.
enum Limit<T> {
    /// The one of clients without a key.
    OfAddress,
    Unlimited,
    Most(T),
}

impl<T> Limit<T> {
    /// The limit of a member of the file.
    fn of(member: Option<u32>, most: impl FnOnce(NonZeroU32) -> T) -> Self {
        match member.map(NonZeroU32::new) {
            None => Self::OfAddress,
            Some(None) => Self::Unlimited,
            Some(Some(number)) => Self::Most(most(number)),
        }
    }
}

/// Why a client may not do what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRefusal {
    /// It sent several keys.
    Several,
    /// No such key is in force.
    Unknown,
    /// It sent none, and clients without a key get no data.
    Missing,
}

impl KeyRefusal {
    /// The problem for the client; never has the key.
    pub(crate) fn problem(self) -> Problem {
        let unauthenticated = |reason: &str| Problem::new(Code::Unauthenticated, UNAUTHENTICATED, reason);
        match self {
            Self::Several => {
                let inner = "Authorization: Bearer <key>, or X-Api-Key: <key>";
                Problem::invalid(MALFORMED, "send one key, in one header").with_inner(inner)
            }
            Self::Unknown => unauthenticated("the key is unknown or has expired"),
            Self::Missing => unauthenticated("a key is needed"),
        }
    }
}

/// A key that a request was sent with.
#[derive(Debug, Clone)]
pub(crate) struct KeyInUse {
    pub(crate) key: Arc<ClientKey>,
    /// How many edges share its limits.
    edges: u32,
    /// Where the request is counted.
    pub(crate) meter: Arc<Meter>,
}

impl Keys {
    /// Reads the file and follows it. A file that is not there yet has no keys.
    ///
    /// # Errors
    /// When the file is faulty.
    pub(crate) fn start(
        file: PathBuf,
        edges: Arc<LiveEdges>,
        usage: Arc<Usage>,
        metrics: Metrics,
    ) -> io::Result<Self> {
        let in_force = Arc::new(RwLock::new(KeyMap::new()));
        let was_there = AtomicBool::new(false);
        let (follower, first) = FileFollower::start("keys", move || read(&file, &was_there), parse)?;
        replace(&in_force, first, &usage);
        tokio::spawn(follow(follower, Arc::clone(&in_force), Arc::clone(&usage), metrics));
        Ok(Self { in_force, edges, usage })
    }

    /// The key of a request, which is counted as one of `operation`.
    ///
    /// # Errors
    /// When there is no such key, or there are several.
    pub(crate) fn of_request(
        &self,
        headers: &HeaderMap,
        operation: impl FnOnce() -> &'static str,
    ) -> Result<Option<KeyInUse>, KeyRefusal> {
        let Some(sent) = sent_key(headers)? else { return Ok(None) };
        self.begin(&KeyDigest::of(sent), operation()).map(Some)
    }

    /// The key of a further request on a connection, as it is in force now.
    ///
    /// # Errors
    /// When it is in force no longer.
    pub(crate) fn again(&self, before: &KeyInUse) -> Result<KeyInUse, KeyRefusal> {
        self.begin(&before.key.entry.sha256, before.meter.operation())
    }

    fn begin(&self, digest: &KeyDigest, operation: &'static str) -> Result<KeyInUse, KeyRefusal> {
        let key = self.in_force.read().get(digest).cloned();
        let key = key.filter(|key| !key.has_expired()).ok_or(KeyRefusal::Unknown)?;
        let meter = key.meters.begin(operation);
        Ok(KeyInUse { key, edges: self.edges.count(), meter })
    }

    /// Writes the last usage records.
    pub(crate) async fn finish(&self) {
        self.usage.finish().await;
    }

    /// Lets the other edges have this one's share.
    pub(crate) async fn leave(&self) {
        self.edges.leave().await;
    }
}

/// The one key in the headers, if any.
fn sent_key(headers: &HeaderMap) -> Result<Option<&[u8]>, KeyRefusal> {
    let bearers = headers.get_all(AUTHORIZATION).into_iter().filter_map(bearer);
    let api_keys = headers.get_all(X_API_KEY).into_iter().map(|value| value.as_bytes().trim_ascii());
    let mut keys = bearers.chain(api_keys);
    let first = keys.next();
    if keys.next().is_some() { Err(KeyRefusal::Several) } else { Ok(first) }
}

/// The key in a value of `Authorization`; other schemes have none.
fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, rest) = value.as_bytes().split_at_checked(BEARER.len())?;
    let is_bearer =
        scheme.eq_ignore_ascii_case(BEARER.as_bytes()) && rest.first().is_none_or(u8::is_ascii_whitespace);
    is_bearer.then(|| rest.trim_ascii())
}

impl ClientKey {
    fn of(entry: KeyEntry, removed: CancellationToken) -> Self {
        let of_burst = |per_s| KeyRateLimiter::new(RateLimit::new(per_s, entry.burst));
        let rate = Limit::of(entry.rate_per_s, of_burst);
        Self { name: entry.name.as_str().into(), entry, rate, removed, meters: KeyMeters::default() }
    }

    /// A number for this key alone.
    pub(crate) fn number(&self) -> u64 {
        self.entry.sha256.number()
    }

    /// The name in logs.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What it has used since the last records.
    pub(crate) fn meters(&self) -> &KeyMeters {
        &self.meters
    }

    /// The line of the file.
    pub(crate) fn entry(&self) -> &KeyEntry {
        &self.entry
    }

    fn has_expired(&self) -> bool {
        self.entry.expires.is_some_and(|expires| Timestamp::now() >= expires)
    }

    /// Resolves when the key is no longer in force.
    async fn ended(&self) {
        let expired = async {
            while let Some(expires) = self.entry.expires
                && !self.has_expired()
            {
                let left = Timestamp::now().duration_until(expires);
                let left = Duration::try_from(left).unwrap_or_default();
                tokio::time::sleep(left.min(CLOCK_CHECK)).await;
            }
        };
        tokio::select! {
            () = self.removed.cancelled() => {}
            () = expired, if self.entry.expires.is_some() => {}
        }
    }
}

/// Resolves when the key of a client is no longer in force; without a key, never.
pub(crate) async fn ended(key: Option<Arc<ClientKey>>) {
    match key {
        Some(key) => key.ended().await,
        None => std::future::pending().await,
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientKey").field(&self.name).finish()
    }
}

impl KeyInUse {
    /// Counts the request against the key's rate: `None` when it is unlimited. `of_address`: the rate of clients
    /// without a key.
    pub(crate) fn count(
        &self,
        of_address: impl FnOnce() -> Option<RateLimitStatus>,
    ) -> Option<RateLimitStatus> {
        match &self.key.rate {
            Limit::OfAddress => of_address(),
            Limit::Unlimited => None,
            Limit::Most(limiter) => Some(limiter.count(self.edges)),
        }
    }

    /// How many downloads or watches the key may have here at the same time; `None` = unlimited.
    pub(crate) fn most(&self, kind: LimitKind, of_address: Option<NonZeroUsize>) -> Option<NonZeroUsize> {
        let member = match kind {
            LimitKind::Downloads => self.key.entry.exports,
            LimitKind::Watches => self.key.entry.watches,
            LimitKind::Rate => self.key.entry.rate_per_s,
        };
        let share = |most: NonZeroU32| NonZeroUsize::new((most.get() / self.edges).max(1) as usize);
        match Limit::of(member, share) {
            Limit::OfAddress => of_address,
            Limit::Unlimited => None,
            Limit::Most(share) => share,
        }
    }
}

/// Reads the file. Until it was there once it may be missing.
fn read(file: &Path, was_there: &AtomicBool) -> io::Result<Vec<u8>> {
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    let length = match file.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !was_there.load(Ordering::Relaxed) => {
            return Ok(Vec::new());
        }
        metadata => metadata.map_err(failed)?.len(),
    };
    was_there.store(true, Ordering::Relaxed);
    if length > MAX_FILE {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    std::fs::read(file).map_err(failed)
}

#[expect(clippy::ptr_arg, reason = "the content of a followed file")]
fn parse(file: &Vec<u8>) -> io::Result<Vec<KeyEntry>> {
    mesh_keys::parse(file).map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault.to_string()))
}

/// Puts the keys of these entries in force. An unchanged key keeps what it has used of its rate. The watches of a key
/// that is removed or expires at another time end.
fn replace(in_force: &RwLock<KeyMap>, entries: Vec<KeyEntry>, usage: &Usage) {
    let mut earlier = in_force.read().clone();
    let mut ended = Vec::new();
    let mut keys = KeyMap::with_capacity(entries.len());
    for entry in entries {
        let digest = entry.sha256;
        let key = match earlier.remove(&digest) {
            Some(key) if key.entry == entry => key,
            Some(key) if key.entry.expires == entry.expires => {
                Arc::new(ClientKey::of(entry, key.removed.clone()))
            }
            Some(key) => {
                ended.push(key);
                Arc::new(ClientKey::of(entry, CancellationToken::new()))
            }
            None => Arc::new(ClientKey::of(entry, CancellationToken::new())),
        };
        keys.insert(digest, key);
    }
    usage.follow(keys.values());
    *in_force.write() = keys;
    earlier.into_values().chain(ended).for_each(|key| key.removed.cancel());
}

/// Puts each good file in force, for as long as the process runs.
async fn follow(
    mut follower: FileFollower<Vec<u8>, Vec<KeyEntry>>,
    in_force: Arc<RwLock<KeyMap>>,
    usage: Arc<Usage>,
    metrics: Metrics,
) {
    loop {
        let reading = follower.next().await;
        if let Some(entries) = reading.changed {
            replace(&in_force, entries, &usage);
            tracing::info!(keys = in_force.read().len(), "other keys are in force");
        }
        metrics.show_keys(in_force.read().len(), reading.is_faulty);
    }
}
