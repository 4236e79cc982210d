//! The limit on concurrent downloads of one address (contract section 7).

use std::{num::NonZeroUsize, sync::Arc};

use mesh_problem::{Code, NOT_MAPPED, Problem};
use parking_lot::Mutex;

use crate::admission::{client_address::Address, fair_semaphore::Counts};

type Downloads = Mutex<Counts<Address>>;

/// Concurrent downloads by address.
pub(crate) struct DownloadLimit {
    limit: Option<NonZeroUsize>,
    downloads: Arc<Downloads>,
}

impl DownloadLimit {
    /// At most this many for each address; `None` = unlimited.
    pub(crate) fn new(limit: Option<NonZeroUsize>) -> Self {
        Self { limit, downloads: Arc::default() }
    }

    /// A permit for one more download; `None` when the limit is off.
    ///
    /// # Errors
    /// When the address has as many downloads as allowed.
    pub(crate) fn try_acquire(&self, address: Address) -> Result<Option<DownloadPermit>, Problem> {
        let Some(limit) = self.limit else { return Ok(None) };
        let mut counts = self.downloads.lock();
        if counts.get(&address) >= limit.get() {
            let reason = "too many downloads go to this address";
            let problem = Problem::new(Code::ResourceExhausted, NOT_MAPPED, reason);
            return Err(problem.with_inner(format!("at most {limit} at the same time")));
        }
        counts.increment(address);
        Ok(Some(DownloadPermit { downloads: Arc::clone(&self.downloads), address }))
    }
}

/// The permit of one download, held until its body is dropped.
pub(crate) struct DownloadPermit {
    downloads: Arc<Downloads>,
    address: Address,
}

impl Drop for DownloadPermit {
    fn drop(&mut self) {
        self.downloads.lock().decrement(self.address);
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
        let limit = DownloadLimit::new(NonZeroUsize::new(2));
        let mut two: Vec<_> = (0..2).map(|_| limit.try_acquire(of(1)).unwrap()).collect();
        assert!(limit.try_acquire(of(1)).is_err());
        let other = limit.try_acquire(of(2)).unwrap();
        two.pop();
        two.push(limit.try_acquire(of(1)).unwrap());
        assert!(limit.try_acquire(of(1)).is_err());
        drop((two, other));
        assert!(limit.downloads.lock().is_empty());
        assert!(DownloadLimit::new(None).try_acquire(of(1)).is_ok_and(|permit| permit.is_none()));
    }
}
