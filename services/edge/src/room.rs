//! Room for so many, shared fairly: whoever holds some of it may hold no more than is left free. While there is plenty
//! nobody notices; one alone gets half of it, two a third each, and somebody new always finds a place that is free.

use std::sync::Arc;

use crate::{address::Address, counts::Counts};
use parking_lot::Mutex;

/// Who holds places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// All clients of an address.
    Address(Address),
    /// All requests of an operation.
    Operation(&'static str),
}

/// So many places.
#[derive(Debug)]
pub(crate) struct Room {
    places: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    count: usize,
    by: Counts<Holder>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All are taken.
    Full,
    /// This one holds its share.
    Share(Holder),
}

impl NoPlace {
    /// What it is counted as.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Share(Holder::Address(_)) => "address",
            Self::Share(Holder::Operation(_)) => "operation",
        }
    }
}

impl Room {
    /// Room for so many.
    pub(crate) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { places, taken: Mutex::default() })
    }

    /// Takes a place, which counts for each of these.
    pub(crate) fn enter<const N: usize>(self: &Arc<Self>, holders: [Holder; N]) -> Result<Place<N>, NoPlace> {
        let mut taken = self.taken.lock();
        let free = self.places.saturating_sub(taken.count);
        if free == 0 {
            return Err(NoPlace::Full);
        }
        if let Some(holder) = holders.into_iter().find(|holder| taken.by.of(holder) >= free) {
            return Err(NoPlace::Share(holder));
        }
        taken.count += 1;
        holders.into_iter().for_each(|holder| taken.by.add(holder));
        Ok(Place { room: Arc::clone(self), holders })
    }
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place<const N: usize> {
    room: Arc<Room>,
    holders: [Holder; N],
}

impl<const N: usize> Drop for Place<N> {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock();
        taken.count -= 1;
        self.holders.into_iter().for_each(|holder| taken.by.remove(holder));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};

    use super::*;

    fn of(number: u32) -> Holder {
        Holder::Address(IpAddr::V4(Ipv4Addr::from_bits(number)).into())
    }

    /// Takes as many places as there are for a holder.
    fn all_for(room: &Arc<Room>, holder: Holder) -> Vec<Place<1>> {
        std::iter::from_fn(|| room.enter([holder]).ok()).collect()
    }

    #[test]
    fn one_gets_half_two_a_third_and_a_new_one_always_finds_a_place() {
        let room = Room::new(60);
        let first = all_for(&room, of(1));
        assert_eq!((first.len(), room.enter([of(1)]).err()), (30, Some(NoPlace::Share(of(1)))));
        let second = all_for(&room, of(2));
        assert_eq!(second.len(), 15, "the half that is left is halved again");
        drop(first);
        let first = all_for(&room, of(1));
        assert_eq!(first.len(), 23);
        for number in 3..=24 {
            all_for(&room, of(number)).into_iter().for_each(std::mem::forget);
        }
        assert_eq!(room.enter([of(99)]).err(), Some(NoPlace::Full));
        drop(second);
        assert!(room.enter([of(99)]).is_ok());
    }

    #[test]
    fn the_smallest_rooms_can_be_filled() {
        for places in 1..=3 {
            let room = Room::new(places);
            let held: Vec<_> = (0..places).map(|number| room.enter([of(number as u32)]).unwrap()).collect();
            assert_eq!(room.enter([of(99)]).err(), Some(NoPlace::Full));
            drop(held);
            assert_eq!(all_for(&room, of(1)).len(), places.div_ceil(2));
        }
        assert!(Room::new(0).enter([]).is_err());
    }

    #[test]
    fn whoever_comes_and_goes_nobody_holds_more_than_its_share_was_and_nothing_stays_behind() {
        let mut random = SmallRng::seed_from_u64(7);
        let room = Room::new(40);
        let operations = ["A", "B", "C"].map(Holder::Operation);
        let mut places = Vec::new();
        for _ in 0..50_000 {
            if random.random_bool(0.55) {
                let holders = [of(random.random_range(0..12)), operations[random.random_range(0..3)]];
                let free = 40 - places.len();
                let held = |holder: &Holder| {
                    places.iter().filter(|place: &&Place<2>| place.holders.contains(holder)).count()
                };
                let expected = match free {
                    0 => Some(NoPlace::Full),
                    _ => holders.into_iter().find(|holder| held(holder) >= free).map(NoPlace::Share),
                };
                match room.enter(holders) {
                    Ok(place) => places.push(place),
                    Err(refused) => assert_eq!(Some(refused), expected),
                }
            } else if !places.is_empty() {
                places.swap_remove(random.random_range(0..places.len()));
            }
        }
        drop(places);
        assert!(room.taken.lock().by.is_empty() && room.taken.lock().count == 0);
    }
}
