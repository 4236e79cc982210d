//! The request rate of each address (contract section 7) and of each key (K3): a burst, refilled at a rate per
//! second. A request over it is refused and does not count; no client is banned.

use std::{
    array,
    hash::{BuildHasher, RandomState},
    num::NonZeroU32,
    time::Duration,
};

use governor::{
    Quota,
    clock::{Clock, MonotonicClock},
    middleware::{StateInformationMiddleware, StateSnapshot},
    nanos::Nanos,
    state::{InMemoryState, NotKeyed, StateStore},
};
use http::{HeaderMap, HeaderName, header::RETRY_AFTER};
use mesh_problem::{Code, Problem, RATE_LIMITED};
use parking_lot::{Mutex, RwLock};

use crate::{client_address::Address, config::RateLimit};

const RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RATELIMIT_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Addresses in one set of the table.
const WAYS: usize = 16;

/// Sets of the table: 131,072 addresses in 6 MiB.
const SETS: usize = 8192;

/// The rate limit of each address.
pub(crate) struct RateLimiter<C: Clock = MonotonicClock> {
    limiter: governor::RateLimiter<Address, ArrivalTable, C, StateInformationMiddleware>,
    clock: C,
    rate: RateLimit,
}

/// The rate limit of one key, of which each of several edges grants its share.
#[derive(Debug)]
pub(crate) struct KeyRateLimiter {
    rate: RateLimit,
    limiter: RwLock<BurstLimiter>,
}

/// A limiter with this burst: at least the cost of a request.
#[derive(Debug)]
struct BurstLimiter {
    burst: NonZeroU32,
    limiter: governor::RateLimiter<NotKeyed, InMemoryState, MonotonicClock, StateInformationMiddleware>,
}

/// The allowance of a client after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimitStatus {
    /// Requests that may come at once.
    limit: u32,
    /// How many of them may still come now.
    remaining: u32,
    /// Seconds until the burst is full again.
    reset_s: u64,
    /// Seconds until the next request is allowed, for a request over the rate.
    wait_s: Option<u64>,
}

impl RateLimiter {
    /// The limit of each address at this rate.
    pub(crate) fn new(rate: RateLimit) -> Self {
        Self::with_clock(MonotonicClock, rate, SETS)
    }
}

impl<C: Clock + Clone> RateLimiter<C> {
    fn with_clock(clock: C, rate: RateLimit, sets: usize) -> Self {
        let limiter = governor::RateLimiter::new(rate.quota(), ArrivalTable::new(sets), clock.clone());
        Self { limiter, clock, rate }
    }

    /// Counts a request of an address.
    pub(crate) fn count(&self, address: Address) -> RateLimitStatus {
        let checked = self.limiter.check_key(&address);
        RateLimitStatus::of(
            checked.map_err(|early| early.wait_time_from(self.clock.now())),
            self.rate,
            NonZeroU32::MIN,
        )
    }
}

impl KeyRateLimiter {
    /// A limit with a full burst.
    pub(crate) fn new(rate: RateLimit) -> Self {
        Self { rate, limiter: RwLock::new(BurstLimiter::new(rate)) }
    }

    /// Counts a request where this many edges grant the limit: each counts a request so many times, and thus lets a
    /// share through, at least one request a second.
    pub(crate) fn count(&self, edges: u32) -> RateLimitStatus {
        let RateLimit { per_s, burst } = self.rate;
        let cost = NonZeroU32::new(edges).unwrap_or(NonZeroU32::MIN).min(per_s);
        // Room for one request, when there are more edges than requests at once.
        let rate = RateLimit { per_s, burst: burst.max(cost) };
        let mut limiter = self.limiter.read();
        if limiter.burst != rate.burst {
            drop(limiter);
            *self.limiter.write() = BurstLimiter::new(rate);
            limiter = self.limiter.read();
        }
        let limiter = &limiter.limiter;
        let checked = limiter.check_n(cost).unwrap_or_else(|_| limiter.check());
        RateLimitStatus::of(checked.map_err(|early| early.wait_time_from(MonotonicClock.now())), rate, cost)
    }
}

impl BurstLimiter {
    fn new(rate: RateLimit) -> Self {
        let limiter = governor::RateLimiter::direct_with_clock(rate.quota(), MonotonicClock);
        Self { burst: rate.burst, limiter: limiter.with_middleware() }
    }
}

fn ceil_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl RateLimit {
    fn quota(self) -> Quota {
        Quota::per_second(self.per_s).allow_burst(self.burst)
    }
}

impl RateLimitStatus {
    /// The status after a check, of which `Err` is the time until the next request is allowed. Each request costs
    /// `cost` of the rate.
    fn of(checked: Result<StateSnapshot, Duration>, rate: RateLimit, cost: NonZeroU32) -> Self {
        let (burst, per_s) = (rate.burst.get(), rate.per_s.get());
        let limit = burst / cost;
        match checked {
            Ok(snapshot) => {
                let remaining = snapshot.remaining_burst_capacity().min(burst);
                let reset_s = u64::from((burst - remaining).div_ceil(per_s));
                Self { limit, remaining: remaining / cost, reset_s, wait_s: None }
            }
            Err(wait) => {
                let wait_s = ceil_seconds(wait).max(1);
                let reset_s = u64::from(burst.div_ceil(per_s)).max(wait_s);
                Self { limit, remaining: 0, reset_s, wait_s: Some(wait_s) }
            }
        }
    }

    /// The refusal of a request over the rate, if it is.
    pub(crate) fn refusal(&self) -> Option<Problem> {
        let wait_s = self.wait_s?;
        let reason = "too many requests come from this client";
        let problem = Problem::new(Code::ResourceExhausted, RATE_LIMITED, reason);
        Some(problem.with_inner(format!("{} at once; the next one in {wait_s} s", self.limit)))
    }

    /// Whether the request is over the rate.
    pub(crate) fn is_over(&self) -> bool {
        self.wait_s.is_some()
    }

    /// Writes the `RateLimit-…` headers, and `Retry-After` on a refusal.
    pub(crate) fn write_headers(&self, headers: &mut HeaderMap, is_refused: bool) {
        headers.insert(RATELIMIT_LIMIT, self.limit.into());
        headers.insert(RATELIMIT_REMAINING, self.remaining.into());
        headers.insert(RATELIMIT_RESET, self.reset_s.into());
        if let Some(wait_s) = self.wait_s.filter(|_| is_refused) {
            headers.insert(RETRY_AFTER, wait_s.into());
        }
    }
}

/// Fixed-size, 16-way set-associative table of theoretical arrival times (GCRA). A full set evicts the
/// address with the earliest time, which gets its full burst back a little early, like a new address.
struct ArrivalTable {
    sets: Box<[Mutex<[Slot; WAYS]>]>,
    hasher: RandomState,
}

#[derive(Clone, Copy)]
struct Slot {
    address: Option<Address>,
    arrival: u64,
}

impl ArrivalTable {
    fn new(sets: usize) -> Self {
        let empty = Slot { address: None, arrival: 0 };
        let sets = (0..sets).map(|_| Mutex::new(array::from_fn(|_| empty))).collect();
        Self { sets, hasher: RandomState::new() }
    }
}

impl StateStore for ArrivalTable {
    type Key = Address;

    fn measure_and_replace<T, F, E>(&self, address: &Address, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let set = usize::try_from(self.hasher.hash_one(address)).unwrap_or_default() % self.sets.len();
        let mut slots = self.sets[set].lock();
        let known = slots.iter().position(|slot| slot.address.as_ref() == Some(address));
        let before = known.map(|index| Nanos::from(slots[index].arrival));
        let (measured, arrival) = measure(before)?;
        let index = known.or_else(|| (0..WAYS).min_by_key(|index| slots[*index].arrival));
        if let Some(index) = index {
            slots[index] = Slot { address: Some(*address), arrival: arrival.into() };
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{IpAddr, Ipv4Addr, Ipv6Addr},
        time::Instant,
    };

    use governor::clock::FakeRelativeClock;

    use super::*;

    fn rate(per_s: u32, burst: u32, sets: usize) -> (RateLimiter<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let [per_s, burst] = [per_s, burst].map(|number| NonZeroU32::new(number).unwrap());
        (RateLimiter::with_clock(clock.clone(), RateLimit { per_s, burst }, sets), clock)
    }

    fn v4(number: u32) -> Address {
        IpAddr::V4(Ipv4Addr::from_bits(number)).into()
    }

    #[test]
    fn an_address_gets_its_burst_and_then_its_rate() {
        let (rate, clock) = rate(2, 6, 1);
        let allowances: Vec<_> =
            (0..6).map(|_| rate.count(v4(1))).map(|at| (at.remaining, at.reset_s)).collect();
        assert_eq!(allowances, [(5, 1), (4, 1), (3, 2), (2, 2), (1, 3), (0, 3)]);
        let over = rate.count(v4(1));
        assert_eq!(over, RateLimitStatus { limit: 6, remaining: 0, reset_s: 3, wait_s: Some(1) });
        assert!(over.is_over() && over.refusal().is_some_and(|problem| problem.number() == 400_001));
        assert!(!rate.count(v4(2)).is_over(), "another address has its own burst");
        // A refused request does not count.
        clock.advance(Duration::from_millis(500));
        assert!(!rate.count(v4(1)).is_over());
        assert!(rate.count(v4(1)).is_over());
        clock.advance(Duration::from_secs(60));
        assert_eq!((0..9).filter(|_| !rate.count(v4(1)).is_over()).count(), 6);
    }

    #[test]
    fn each_of_several_edges_grants_its_share_of_a_key() {
        let key = |per_s, burst| {
            let [per_s, burst] = [per_s, burst].map(|number| NonZeroU32::new(number).unwrap());
            KeyRateLimiter::new(RateLimit { per_s, burst })
        };
        let granted = |per_s, burst, edges| {
            let key = key(per_s, burst);
            (0..burst).filter(|_| !key.count(edges).is_over()).count()
        };
        assert_eq!((granted(1, 60, 1), granted(2, 60, 2), granted(3, 60, 3)), (60, 30, 20));
        assert_eq!((granted(1, 3, 99), granted(9, 3, 99)), (3, 1), "at least one request a second");
        let single = key(1000, 1);
        let (begun, mut granted) = (Instant::now(), 0);
        while begun.elapsed() < Duration::from_millis(200) {
            granted += u32::from(!single.count(20).is_over());
        }
        assert!(granted <= 12, "{granted} of 10 requests: the rate is shared where the burst cannot be");
        let status = key(10, 60).count(2);
        assert_eq!(status, RateLimitStatus { limit: 30, remaining: 29, reset_s: 1, wait_s: None });
    }

    #[test]
    fn the_greatest_figures_do_not_overflow() {
        for (per_s, burst) in [(1, u32::MAX), (u32::MAX, 1), (u32::MAX, u32::MAX), (1, 1)] {
            let (rate, clock) = rate(per_s, burst, 1);
            for _ in 0..5 {
                let status = rate.count(v4(1));
                assert!(status.remaining < burst && status.limit == burst, "{status:?}");
                clock.advance(Duration::from_secs(86_400 * 365));
            }
        }
    }

    #[test]
    fn ten_million_addresses_take_no_more_memory_and_do_not_evict_a_busy_one() {
        let (rate, clock) = rate(1, 100, SETS);
        for _ in 0..100 {
            assert!(!rate.count(v4(0)).is_over());
        }
        // Fewer in a debug build; the table is full with these as well.
        let addresses: u64 = if cfg!(debug_assertions) { 400_000 } else { 10_000_000 };
        for number in 1..=addresses {
            let network = IpAddr::V6(Ipv6Addr::from_bits(u128::from(number) << 64));
            assert!(!rate.count(network.into()).is_over(), "a new address is not refused");
            if number % 400 == 0 {
                clock.advance(Duration::from_millis(1));
                assert_eq!(
                    rate.count(v4(0)).is_over(),
                    clock.now().as_u64() % 1_000_000_000 != 0,
                    "{number}"
                );
            }
        }
        assert_eq!(size_of::<Slot>() * WAYS * SETS, 6 << 20);
    }

    #[test]
    fn a_full_set_evicts_the_address_with_the_fullest_burst() {
        let (rate, _clock) = rate(1, 10, 1);
        for number in 0..=16 {
            for _ in 0..=number.min(9) {
                rate.count(v4(number));
            }
        }
        // The first one sent a single request and is evicted; the others are stored.
        assert_eq!(rate.count(v4(16)).remaining, 0);
        assert_eq!(rate.count(v4(5)).remaining, 3);
        assert_eq!(rate.count(v4(0)).remaining, 9);
    }
}
