//! A concurrency limit with fair shares: the permits of one owner never exceed the free permits. One owner
//! alone gets half of them, two a third each, and a new owner gets a permit until all are taken.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::Arc,
};

use parking_lot::Mutex;

use crate::client_address::ClientId;

/// Whose share a permit counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// All requests of a client.
    Client(ClientId),
    /// All requests of an operation.
    Operation(&'static str),
    /// The requests of a client that are of an operation. They also stay within what the operation has left, so that
    /// no client takes all of its share.
    Part(ClientId, &'static str),
}

/// A limited number of permits.
#[derive(Debug)]
pub(crate) struct FairSemaphore {
    permits: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    count: usize,
    by_owner: Counts<Owner>,
}

/// Why a permit is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// All permits are taken.
    Full,
    /// This owner holds its share.
    Share(Owner),
}

impl Rejected {
    /// The label in the metrics.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Share(Owner::Client(_) | Owner::Part(..)) => "address",
            Self::Share(Owner::Operation(_)) => "operation",
        }
    }
}

impl FairSemaphore {
    /// A semaphore with this many permits.
    pub(crate) fn new(permits: usize) -> Arc<Self> {
        Arc::new(Self { permits, taken: Mutex::default() })
    }

    /// Takes a permit, which counts for each of these owners.
    ///
    /// # Errors
    /// When no permit is free, or one of the owners holds its share.
    pub(crate) fn try_acquire<const N: usize>(
        self: &Arc<Self>,
        owners: [Owner; N],
    ) -> Result<Permit<N>, Rejected> {
        let mut taken = self.taken.lock();
        let free = self.permits.saturating_sub(taken.count);
        if free == 0 {
            return Err(Rejected::Full);
        }
        let left = |owner: &Owner| match owner {
            Owner::Part(_, operation) => {
                free.saturating_sub(taken.by_owner.get(&Owner::Operation(operation)))
            }
            Owner::Client(_) | Owner::Operation(_) => free,
        };
        if let Some(owner) = owners.into_iter().find(|owner| taken.by_owner.get(owner) >= left(owner)) {
            return Err(Rejected::Share(owner));
        }
        taken.count += 1;
        owners.into_iter().for_each(|owner| taken.by_owner.increment(owner));
        Ok(Permit { semaphore: Arc::clone(self), owners })
    }
}

/// A permit that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit<const N: usize> {
    semaphore: Arc<FairSemaphore>,
    owners: [Owner; N],
}

impl<const N: usize> Drop for Permit<N> {
    fn drop(&mut self) {
        let mut taken = self.semaphore.taken.lock();
        taken.count -= 1;
        self.owners.into_iter().for_each(|owner| taken.by_owner.decrement(owner));
    }
}

/// Counts by key; a key whose count is zero takes no memory.
#[derive(Debug)]
pub(super) struct Counts<K>(HashMap<K, usize>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Counts<K> {
    /// The count of a key.
    pub(super) fn get(&self, key: &K) -> usize {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// Adds one.
    pub(super) fn increment(&mut self, key: K) {
        *self.0.entry(key).or_default() += 1;
    }

    /// Takes one away.
    pub(super) fn decrement(&mut self, key: K) {
        if let Entry::Occupied(mut count) = self.0.entry(key) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Whether all counts are zero.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};

    use super::*;

    fn of(number: u32) -> Owner {
        Owner::Client(ClientId::Address(IpAddr::V4(Ipv4Addr::from_bits(number)).into()))
    }

    /// Takes all permits that an owner can get.
    fn all_for(semaphore: &Arc<FairSemaphore>, owner: Owner) -> Vec<Permit<1>> {
        std::iter::from_fn(|| semaphore.try_acquire([owner]).ok()).collect()
    }

    #[test]
    fn one_owner_gets_half_two_a_third_each_and_a_new_one_gets_a_permit() {
        let semaphore = FairSemaphore::new(60);
        let first = all_for(&semaphore, of(1));
        assert_eq!((first.len(), semaphore.try_acquire([of(1)]).err()), (30, Some(Rejected::Share(of(1)))));
        let second = all_for(&semaphore, of(2));
        assert_eq!(second.len(), 15, "the half that is left is halved again");
        drop(first);
        let first = all_for(&semaphore, of(1));
        assert_eq!(first.len(), 23);
        for number in 3..=24 {
            all_for(&semaphore, of(number)).into_iter().for_each(std::mem::forget);
        }
        assert_eq!(semaphore.try_acquire([of(99)]).err(), Some(Rejected::Full));
        drop(second);
        assert!(semaphore.try_acquire([of(99)]).is_ok());
    }

    #[test]
    fn one_client_gets_a_third_for_an_operation_and_leaves_permits_of_it_to_others() {
        let semaphore = FairSemaphore::new(60);
        let client = |number| ClientId::Address(IpAddr::V4(Ipv4Addr::from_bits(number)).into());
        let all = |number: u32| {
            let (id, operation) = (client(number), Owner::Operation("A"));
            let owners = [operation, Owner::Part(id, "A"), Owner::Client(id)];
            std::iter::from_fn(|| semaphore.try_acquire(owners).ok()).collect::<Vec<_>>()
        };
        let (first, second) = (all(1), all(2));
        assert_eq!((first.len(), second.len()), (20, 7));
        assert!(!all(3).is_empty());
        drop((first, second));
        assert_eq!(all(4).len(), 20);
    }

    #[test]
    fn all_permits_of_the_smallest_semaphores_can_be_taken() {
        for permits in 1..=3 {
            let semaphore = FairSemaphore::new(permits);
            let held: Vec<_> =
                (0..permits).map(|number| semaphore.try_acquire([of(number as u32)]).unwrap()).collect();
            assert_eq!(semaphore.try_acquire([of(99)]).err(), Some(Rejected::Full));
            drop(held);
            assert_eq!(all_for(&semaphore, of(1)).len(), permits.div_ceil(2));
        }
        assert!(FairSemaphore::new(0).try_acquire([]).is_err());
    }

    #[test]
    fn no_owner_exceeds_its_share_and_released_permits_leave_no_counts() {
        let mut random = SmallRng::seed_from_u64(7);
        let semaphore = FairSemaphore::new(40);
        let operations = ["A", "B", "C"].map(Owner::Operation);
        let mut permits = Vec::new();
        for _ in 0..50_000 {
            if random.random_bool(0.55) {
                let owners = [of(random.random_range(0..12)), operations[random.random_range(0..3)]];
                let free = 40 - permits.len();
                let held = |owner: &Owner| {
                    permits.iter().filter(|permit: &&Permit<2>| permit.owners.contains(owner)).count()
                };
                let expected = match free {
                    0 => Some(Rejected::Full),
                    _ => owners.into_iter().find(|owner| held(owner) >= free).map(Rejected::Share),
                };
                match semaphore.try_acquire(owners) {
                    Ok(permit) => permits.push(permit),
                    Err(refused) => assert_eq!(Some(refused), expected),
                }
            } else if !permits.is_empty() {
                permits.swap_remove(random.random_range(0..permits.len()));
            }
        }
        drop(permits);
        assert!(semaphore.taken.lock().by_owner.is_empty() && semaphore.taken.lock().count == 0);
    }
}
