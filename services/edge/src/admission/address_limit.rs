//! Limits on concurrent downloads and watches (contract section 7, W8), per address and in total.

use std::{num::NonZeroUsize, sync::Arc};

use mesh_problem::{Code, NOT_MAPPED, Problem};
use parking_lot::Mutex;

use crate::{admission::fair_semaphore::Counts, client_address::Address};

/// A limit on one kind of open answers.
pub(crate) struct AddressLimit {
    per_address: Option<NonZeroUsize>,
    total: Option<usize>,
    /// In an error text: `downloads`.
    plural: &'static str,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    count: usize,
    by_address: Counts<Address>,
}

impl AddressLimit {
    /// At most this many downloads to each address; `None` = unlimited.
    pub(crate) fn downloads(per_address: Option<NonZeroUsize>) -> Self {
        Self { per_address, total: None, plural: "downloads", open: Arc::default() }
    }

    /// At most this many watches, and of each address; `None` = unlimited.
    pub(crate) fn watches(total: usize, per_address: Option<NonZeroUsize>) -> Self {
        Self { per_address, total: Some(total), plural: "watches", open: Arc::default() }
    }

    /// A permit for one more.
    ///
    /// # Errors
    /// When there are as many as allowed.
    pub(crate) fn try_acquire(&self, address: Address) -> Result<AddressPermit, Problem> {
        let refusal = |reason: String, most: usize| {
            let problem = Problem::new(Code::ResourceExhausted, NOT_MAPPED, reason);
            Err(problem.with_inner(format!("at most {most} at the same time")))
        };
        let mut open = self.open.lock();
        if let Some(most) = self.per_address.filter(|most| open.by_address.get(&address) >= most.get()) {
            return refusal(format!("too many {} go to this address", self.plural), most.get());
        }
        if let Some(most) = self.total.filter(|most| open.count >= *most) {
            return refusal(format!("too many {} are open", self.plural), most);
        }
        open.count += 1;
        // Without a limit of each address none is counted, so that a download takes no memory here.
        let address = self.per_address.map(|_| address);
        address.into_iter().for_each(|address| open.by_address.increment(address));
        Ok(AddressPermit { open: Arc::clone(&self.open), address })
    }
}

/// The permit of one open answer, held until its body is dropped.
pub(crate) struct AddressPermit {
    open: Arc<Mutex<Open>>,
    /// Where it is counted.
    address: Option<Address>,
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        open.count -= 1;
        self.address.into_iter().for_each(|address| open.by_address.decrement(address));
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
    fn each_address_has_its_own_limit_and_an_address_without_downloads_is_not_stored() {
        let limit = AddressLimit::downloads(NonZeroUsize::new(2));
        let mut two: Vec<_> = (0..2).map(|_| limit.try_acquire(of(1)).unwrap()).collect();
        assert!(limit.try_acquire(of(1)).is_err());
        let other = limit.try_acquire(of(2)).unwrap();
        two.pop();
        two.push(limit.try_acquire(of(1)).unwrap());
        assert!(limit.try_acquire(of(1)).is_err());
        drop((two, other));
        assert!(limit.open.lock().by_address.is_empty());
        assert!(AddressLimit::downloads(None).try_acquire(of(1)).is_ok());
    }

    #[test]
    fn all_addresses_share_the_limit_on_watches() {
        let limit = AddressLimit::watches(3, NonZeroUsize::new(2));
        let _two: Vec<_> = (0..2).map(|_| limit.try_acquire(of(1)).unwrap()).collect();
        let refused = |number| limit.try_acquire(of(number)).err().unwrap();
        assert_eq!(refused(1).details[0].message, "too many watches go to this address");
        let third = limit.try_acquire(of(2)).unwrap();
        assert_eq!(refused(2).details[0].message, "too many watches are open");
        assert_eq!(
            (refused(2).code.number(), refused(2).details[0].inner.as_str()),
            (8, "at most 3 at the same time")
        );
        drop(third);
        assert!(limit.try_acquire(of(2)).is_ok());
    }
}
