//! How many downloads an address may have at the same time (contract section 7).

use std::{num::NonZeroUsize, sync::Arc};

use mesh_problem::{Code, NOT_MAPPED, Problem};
use parking_lot::Mutex;

use crate::{address::Address, counts::Counts};

/// The downloads of each address.
pub(crate) struct Exports {
    at_most: Option<NonZeroUsize>,
    held: Arc<Held>,
}

impl Exports {
    /// So many for each; nothing = as many as it likes.
    pub(crate) fn new(at_most: Option<NonZeroUsize>) -> Self {
        Self { at_most, held: Arc::default() }
    }

    /// A place for one more download.
    ///
    /// # Errors
    /// When the address has as many as it may.
    pub(crate) fn enter(&self, client: Address) -> Result<ExportPlace, Problem> {
        let Some(at_most) = self.at_most else { return Ok(None) };
        let mut counts = self.held.lock();
        if counts.of(&client) >= at_most.get() {
            let reason = "too many downloads go to this address";
            let problem = Problem::new(Code::ResourceExhausted, NOT_MAPPED, reason);
            return Err(problem.with_inner(format!("at most {at_most} at the same time")));
        }
        counts.add(client);
        Ok(Some(Hold { held: Arc::clone(&self.held), client }))
    }
}

/// A download's place, until its body is gone. Where nothing is limited there is nothing to hold.
pub(crate) type ExportPlace = Option<Hold>;

/// How many each address has.
type Held = Mutex<Counts<Address>>;

/// A place that is held, until it is dropped.
pub(crate) struct Hold {
    held: Arc<Held>,
    client: Address,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.held.lock().remove(self.client);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn of(number: u32) -> Address {
        IpAddr::V4(Ipv4Addr::from_bits(number)).into()
    }

    #[test]
    fn each_address_has_its_own_number_and_one_that_has_none_is_forgotten() {
        let exports = Exports::new(NonZeroUsize::new(2));
        let mut two: Vec<_> = (0..2).map(|_| exports.enter(of(1)).unwrap()).collect();
        assert!(exports.enter(of(1)).is_err());
        let other = exports.enter(of(2)).unwrap();
        two.pop();
        two.push(exports.enter(of(1)).unwrap());
        assert!(exports.enter(of(1)).is_err());
        drop((two, other));
        assert!(exports.held.lock().is_empty());
        assert!(Exports::new(None).enter(of(1)).is_ok_and(|place| place.is_none()));
    }
}
