//! How many requests an address may send (contract section 7): so many at once, and so many a second after that. Over
//! it a request is refused; nobody is banned.

use std::{
    array,
    hash::{BuildHasher, RandomState},
    num::NonZeroU32,
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, MonotonicClock},
    middleware::StateInformationMiddleware,
    nanos::Nanos,
    state::StateStore,
};
use http::{HeaderMap, HeaderName, header::RETRY_AFTER};
use mesh_problem::{Code, Problem, RATE_LIMITED};
use parking_lot::Mutex;

use crate::address::Address;

const RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RATELIMIT_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Addresses that are remembered together.
const WAYS: usize = 16;

/// How many such groups there are: 131,072 addresses in 6 MiB, whoever comes.
const GROUPS: usize = 8192;

/// The rate of each address.
pub(crate) struct Rate<C: Clock = MonotonicClock> {
    limiter: RateLimiter<Address, Remembered, C, StateInformationMiddleware>,
    clock: C,
    per_s: NonZeroU32,
    burst: NonZeroU32,
}

/// How an address stands with its rate after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Requests that may come at once.
    limit: u32,
    /// How many of them may still come now.
    remaining: u32,
    /// Seconds until all may come again.
    reset_s: u64,
    /// Seconds until one may come again, for a request that came too early.
    wait_s: Option<u64>,
}

impl Rate {
    /// So many requests a second, and so many at once.
    pub(crate) fn new(per_s: NonZeroU32, burst: NonZeroU32) -> Self {
        Self::by(MonotonicClock, per_s, burst, GROUPS)
    }
}

impl<C: Clock + Clone> Rate<C> {
    fn by(clock: C, per_s: NonZeroU32, burst: NonZeroU32, groups: usize) -> Self {
        let quota = Quota::per_second(per_s).allow_burst(burst);
        let limiter = RateLimiter::new(quota, Remembered::new(groups), clock.clone());
        Self { limiter, clock, per_s, burst }
    }

    /// Counts a request of an address.
    pub(crate) fn count(&self, address: Address) -> Standing {
        let limit = self.burst.get();
        match self.limiter.check_key(&address) {
            Ok(snapshot) => {
                let remaining = snapshot.remaining_burst_capacity();
                let reset_s = u64::from((limit - remaining.min(limit)).div_ceil(self.per_s.get()));
                Standing { limit, remaining, reset_s, wait_s: None }
            }
            Err(early) => {
                let wait_s = whole_seconds(early.wait_time_from(self.clock.now())).max(1);
                let reset_s = u64::from(limit.div_ceil(self.per_s.get()));
                Standing { limit, remaining: 0, reset_s: reset_s.max(wait_s), wait_s: Some(wait_s) }
            }
        }
    }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl Standing {
    /// Why a request is refused that came too early.
    pub(crate) fn refusal(&self) -> Option<Problem> {
        let wait_s = self.wait_s?;
        let reason = "too many requests come from this address";
        let problem = Problem::new(Code::ResourceExhausted, RATE_LIMITED, reason);
        Some(problem.with_inner(format!("{} at once; the next one in {wait_s} s", self.limit)))
    }

    /// Whether its request came too early.
    pub(crate) fn is_over(&self) -> bool {
        self.wait_s.is_some()
    }

    /// Tells a client by headers, or metadata, how it stands, and one that is refused when to come again.
    pub(crate) fn tell(&self, headers: &mut HeaderMap, is_refused: bool) {
        headers.insert(RATELIMIT_LIMIT, self.limit.into());
        headers.insert(RATELIMIT_REMAINING, self.remaining.into());
        headers.insert(RATELIMIT_RESET, self.reset_s.into());
        if let Some(wait_s) = self.wait_s.filter(|_| is_refused) {
            headers.insert(RETRY_AFTER, wait_s.into());
        }
    }
}

/// When each address will be back at nothing, in a table of a size that never changes. Where a group is full, the address
/// that is back soonest is forgotten: it may send its burst anew a little early, which a stranger may anyway. So ten
/// million addresses cost no more memory than a hundred thousand, and throttle nobody else.
struct Remembered {
    groups: Box<[Mutex<[Slot; WAYS]>]>,
    hasher: RandomState,
}

#[derive(Clone, Copy)]
struct Slot {
    address: Option<Address>,
    back_at: u64,
}

impl Remembered {
    fn new(groups: usize) -> Self {
        let empty = Slot { address: None, back_at: 0 };
        let groups = (0..groups).map(|_| Mutex::new(array::from_fn(|_| empty))).collect();
        Self { groups, hasher: RandomState::new() }
    }
}

impl StateStore for Remembered {
    type Key = Address;

    fn measure_and_replace<T, F, E>(&self, address: &Address, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let group = usize::try_from(self.hasher.hash_one(address)).unwrap_or_default() % self.groups.len();
        let mut slots = self.groups[group].lock();
        let known = slots.iter().position(|slot| slot.address.as_ref() == Some(address));
        let before = known.map(|place| Nanos::from(slots[place].back_at));
        let (measured, back_at) = measure(before)?;
        let place = known.or_else(|| (0..WAYS).min_by_key(|place| slots[*place].back_at));
        if let Some(place) = place {
            slots[place] = Slot { address: Some(*address), back_at: back_at.into() };
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use governor::clock::FakeRelativeClock;

    use super::*;

    fn rate(per_s: u32, burst: u32, groups: usize) -> (Rate<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let [per_s, burst] = [per_s, burst].map(|number| NonZeroU32::new(number).unwrap());
        (Rate::by(clock.clone(), per_s, burst, groups), clock)
    }

    fn v4(number: u32) -> Address {
        IpAddr::V4(Ipv4Addr::from_bits(number)).into()
    }

    #[test]
    fn an_address_has_its_burst_and_then_its_rate_and_is_told_both() {
        let (rate, clock) = rate(2, 6, 1);
        let told: Vec<_> = (0..6).map(|_| rate.count(v4(1))).map(|at| (at.remaining, at.reset_s)).collect();
        assert_eq!(told, [(5, 1), (4, 1), (3, 2), (2, 2), (1, 3), (0, 3)]);
        let over = rate.count(v4(1));
        assert_eq!(over, Standing { limit: 6, remaining: 0, reset_s: 3, wait_s: Some(1) });
        assert!(over.is_over() && over.refusal().is_some_and(|problem| problem.number() == 400_001));
        assert!(!rate.count(v4(2)).is_over(), "another one is not asked to wait");
        // What was refused did not count.
        clock.advance(Duration::from_millis(500));
        assert!(!rate.count(v4(1)).is_over());
        assert!(rate.count(v4(1)).is_over());
        clock.advance(Duration::from_secs(60));
        assert_eq!((0..9).filter(|_| !rate.count(v4(1)).is_over()).count(), 6);
    }

    #[test]
    fn the_greatest_figures_do_not_overflow() {
        for (per_s, burst) in [(1, u32::MAX), (u32::MAX, 1), (u32::MAX, u32::MAX), (1, 1)] {
            let (rate, clock) = rate(per_s, burst, 1);
            for _ in 0..5 {
                let standing = rate.count(v4(1));
                assert!(standing.remaining < burst && standing.limit == burst, "{standing:?}");
                clock.advance(Duration::from_secs(86_400 * 365));
            }
        }
    }

    #[test]
    fn ten_million_addresses_take_no_more_room_and_a_busy_one_is_not_forgotten_for_them() {
        let (rate, clock) = rate(1, 100, GROUPS);
        for _ in 0..100 {
            assert!(!rate.count(v4(0)).is_over());
        }
        // All of them where that takes a moment only; the table is full long before.
        let strangers: u64 = if cfg!(debug_assertions) { 400_000 } else { 10_000_000 };
        for number in 1..=strangers {
            let network = IpAddr::V6(Ipv6Addr::from_bits(u128::from(number) << 64));
            assert!(!rate.count(network.into()).is_over(), "nobody is refused for what others did");
            if number % 400 == 0 {
                clock.advance(Duration::from_millis(1));
                assert_eq!(
                    rate.count(v4(0)).is_over(),
                    clock.now().as_u64() % 1_000_000_000 != 0,
                    "{number}"
                );
            }
        }
        assert_eq!(size_of::<Slot>() * WAYS * GROUPS, 6 << 20);
    }

    #[test]
    fn what_is_forgotten_is_who_is_back_soonest() {
        let (rate, _clock) = rate(1, 10, 1);
        for number in 0..=16 {
            for _ in 0..=number.min(9) {
                rate.count(v4(number));
            }
        }
        // The first one sent one request, and is as new; the others are remembered.
        assert_eq!(rate.count(v4(16)).remaining, 0);
        assert_eq!(rate.count(v4(5)).remaining, 3);
        assert_eq!(rate.count(v4(0)).remaining, 9);
    }
}
