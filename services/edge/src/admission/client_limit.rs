//! Limits on concurrent downloads and watches (contract section 7, W8), per client and in total.

use std::{num::NonZeroUsize, sync::Arc};

use mesh_problem::{Code, NOT_MAPPED, Problem};
use parking_lot::Mutex;

use crate::{
    admission::{ClientContext, fair_semaphore::Counts},
    client_address::ClientId,
    keys::{ClientKey, usage::OpenWatch},
    metrics::LimitKind,
};

/// A limit on one kind of open answers.
pub(crate) struct ClientLimit {
    kind: LimitKind,
    /// Of each client without a key.
    per_address: Option<NonZeroUsize>,
    total: Option<usize>,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    count: usize,
    by_client: Counts<ClientId>,
}

impl ClientLimit {
    /// At most this many downloads to each address; `None` = unlimited.
    pub(crate) fn downloads(per_address: Option<NonZeroUsize>) -> Self {
        Self { kind: LimitKind::Downloads, per_address, total: None, open: Arc::default() }
    }

    /// At most this many watches, and of each address; `None` = unlimited.
    pub(crate) fn watches(total: usize, per_address: Option<NonZeroUsize>) -> Self {
        Self { kind: LimitKind::Watches, per_address, total: Some(total), open: Arc::default() }
    }

    /// A permit for one more of this client.
    ///
    /// # Errors
    /// When there are as many as allowed.
    pub(crate) fn permit(&self, client: &ClientContext) -> Result<ClientPermit, Problem> {
        let key = client.key.as_ref();
        let most = key.map_or(self.per_address, |key| key.most(self.kind, self.per_address));
        let mut permit = self.try_acquire(client.id, most)?;
        permit.key = key.map(|key| Arc::clone(&key.key));
        let is_watch = matches!(self.kind, LimitKind::Watches);
        permit.watch = key.filter(|_| is_watch).map(|key| key.meter.watch());
        Ok(permit)
    }

    /// A permit for one more of a client that may have `most`.
    fn try_acquire(&self, client: ClientId, most: Option<NonZeroUsize>) -> Result<ClientPermit, Problem> {
        let plural = match self.kind {
            LimitKind::Downloads => "downloads",
            _ => "watches",
        };
        let refusal = |reason: String, most: usize| {
            let problem = Problem::new(Code::ResourceExhausted, NOT_MAPPED, reason);
            Err(problem.with_inner(format!("at most {most} at the same time")))
        };
        let mut open = self.open.lock();
        if let Some(most) = most.filter(|most| open.by_client.get(&client) >= most.get()) {
            return refusal(format!("too many {plural} go to this client"), most.get());
        }
        if let Some(most) = self.total.filter(|most| open.count >= *most) {
            return refusal(format!("too many {plural} are open"), most);
        }
        open.count += 1;
        // A client without a limit is not counted, so that a download takes no memory here.
        let client = most.map(|_| client);
        client.into_iter().for_each(|client| open.by_client.increment(client));
        Ok(ClientPermit { open: Arc::clone(&self.open), client, key: None, watch: None })
    }
}

/// The permit of one open answer, held until its body is dropped.
pub(crate) struct ClientPermit {
    open: Arc<Mutex<Open>>,
    /// Where it is counted.
    client: Option<ClientId>,
    key: Option<Arc<ClientKey>>,
    /// Counts the time of a watch for the key.
    watch: Option<OpenWatch>,
}

impl ClientPermit {
    /// The key of its client.
    pub(crate) fn key(&self) -> Option<Arc<ClientKey>> {
        self.key.clone()
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        open.count -= 1;
        self.client.into_iter().for_each(|client| open.by_client.decrement(client));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn of(number: u32) -> ClientId {
        ClientId::Address(IpAddr::V4(Ipv4Addr::from_bits(number)).into())
    }

    #[test]
    fn each_address_has_its_own_limit_and_an_address_without_downloads_is_not_stored() {
        let limit = ClientLimit::downloads(NonZeroUsize::new(2));
        let mut two: Vec<_> = (0..2).map(|_| limit.try_acquire(of(1), limit.per_address).unwrap()).collect();
        assert!(limit.try_acquire(of(1), limit.per_address).is_err());
        let other = limit.try_acquire(of(2), limit.per_address).unwrap();
        two.pop();
        two.push(limit.try_acquire(of(1), limit.per_address).unwrap());
        assert!(limit.try_acquire(of(1), limit.per_address).is_err());
        drop((two, other));
        assert!(limit.open.lock().by_client.is_empty());
        assert!(ClientLimit::downloads(None).try_acquire(of(1), None).is_ok());
    }
}
