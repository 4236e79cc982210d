//! A limit on the bytes of long answers and request bodies that an edge holds, so that clients that do not read, or that
//! watch thousands of long answers, cannot take all of its memory.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use bytes::Bytes;
use mesh_problem::Problem;
use parking_lot::Mutex;

/// Shorter texts are not counted: there are many, and the limits on requests and watches bound them; but see
/// [`AnswerMemory::hold_short`].
pub(crate) const UNCOUNTED: usize = 64 << 10;

/// A client may have one part in so many of the memory in short answers over HTTP/2, …
const SHORT_SHARE: usize = 8;
/// … each of which takes this at least.
const LEAST: usize = 1 << 10;

/// All watchers together, as a client: no address has this number.
const WATCHERS: u64 = u64::MAX;

/// The reason of a refusal that concerns the client alone.
const SHARE: &str = "the gateway holds too many long answers that this client has not read so far";

/// The memory of one edge. Cloning shares it; the default one has no limit.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerMemory(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: usize,
    by_client: HashMap<u64, usize>,
    /// Of short answers, besides `bytes`.
    short_by_client: HashMap<u64, usize>,
}

/// Bytes that are counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    shared: Arc<Shared>,
    client: u64,
    bytes: usize,
    is_short: bool,
}

/// A piece of an answer, which is counted until its last reference is dropped.
struct Piece {
    bytes: Bytes,
    _held: Arc<Held>,
}

impl AnswerMemory {
    /// A memory of this many bytes.
    pub(crate) fn new(most: u64) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Self(Some(Arc::new(Shared { most, taken: Mutex::default() })))
    }

    /// The pieces of an answer, counted for the client that asked until the last reference to one of them is dropped.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(crate) fn hold(&self, client: u64, pieces: Vec<Bytes>) -> Result<Vec<Bytes>, Problem> {
        let Some(held) = self.take(client, pieces.iter().map(Bytes::len).sum())? else { return Ok(pieces) };
        Ok(held.of(&pieces))
    }

    /// As [`Self::hold`], of an answer that a client gets over HTTP/2 and that is not counted as a long one. A connection may
    /// have a hundred answers that its client does not take, and nothing ends them while it takes others.
    ///
    /// # Errors
    /// Unavailable, when the client has too many of them.
    pub(crate) fn hold_short(&self, client: u64, pieces: &[Bytes]) -> Result<Vec<Bytes>, Problem> {
        let bytes = pieces.iter().map(Bytes::len).sum::<usize>();
        let Some(shared) = self.0.as_ref().filter(|_| (1..=UNCOUNTED).contains(&bytes)) else {
            return Ok(pieces.to_vec());
        };
        let bytes = bytes.max(LEAST);
        let mut taken = shared.taken.lock();
        let own = taken.short_by_client.entry(client).or_default();
        if *own + bytes > (shared.most / SHORT_SHARE).max(UNCOUNTED) {
            return Err(Problem::unavailable(SHARE));
        }
        *own += bytes;
        drop(taken);
        Ok(Held { shared: Arc::clone(shared), client, bytes, is_short: true }.of(pieces))
    }

    /// As [`Self::hold`], of an answer that is watched: it counts for all watchers when this client has used up its own
    /// share, so that others who watch it are not affected.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(crate) fn hold_watched(&self, client: u64, pieces: Vec<Bytes>) -> Result<Vec<Bytes>, Problem> {
        match self.hold(client, pieces.clone()) {
            Err(problem) if is_share_refusal(&problem) => self.hold(WATCHERS, pieces),
            held => held,
        }
    }

    /// Counts so many bytes for a client; `None` when they need not be counted. A client alone may have half of the
    /// memory, two a third each, as of the permits of requests.
    ///
    /// # Errors
    /// Unavailable, when there is no room for them.
    pub(crate) fn take(&self, client: u64, bytes: usize) -> Result<Option<Held>, Problem> {
        let Some(shared) = self.0.as_ref().filter(|_| bytes > UNCOUNTED) else { return Ok(None) };
        let mut taken = shared.taken.lock();
        let free = shared.most.saturating_sub(taken.bytes);
        let own = taken.by_client.get(&client).copied().unwrap_or(0);
        if own.saturating_add(bytes) > free {
            let full = "the gateway holds too many long answers that were not read so far";
            return Err(Problem::unavailable(if bytes > free { full } else { SHARE }));
        }
        taken.bytes += bytes;
        *taken.by_client.entry(client).or_default() += bytes;
        Ok(Some(Held { shared: Arc::clone(shared), client, bytes, is_short: false }))
    }
}

impl Held {
    /// Pieces that count as this until the last reference to one of them is dropped.
    fn of(self, pieces: &[Bytes]) -> Vec<Bytes> {
        let held = Arc::new(self);
        let piece =
            |bytes: &Bytes| Bytes::from_owner(Piece { bytes: bytes.clone(), _held: Arc::clone(&held) });
        pieces.iter().map(piece).collect()
    }
}

/// Whether a problem is that the client has used up its share.
pub(crate) fn is_share_refusal(problem: &Problem) -> bool {
    problem.details.first().is_some_and(|detail| detail.message == SHARE)
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut taken = self.shared.taken.lock();
        let clients = match self.is_short {
            true => &mut taken.short_by_client,
            false => {
                taken.bytes -= self.bytes;
                &mut taken.by_client
            }
        };
        if let Entry::Occupied(mut own) = clients.entry(self.client) {
            *own.get_mut() -= self.bytes;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn short_answers_count_for_their_client_alone() {
        let memory = AnswerMemory::new(8 * MIB as u64);
        let answer = [Bytes::from(vec![7; UNCOUNTED])];
        let held: Vec<_> = std::iter::from_fn(|| memory.hold_short(1, &answer).ok()).collect();
        assert_eq!((held.len() * UNCOUNTED, &*held[0]), (MIB, &answer[..]));
        assert!(memory.hold_short(1, &[Bytes::from_static(b"x")]).is_err());
        assert!(memory.hold_short(2, &answer).is_ok() && memory.take(1, 4 * MIB).is_ok());
        drop(held);
        assert!(memory.hold_short(1, &answer).is_ok());
        assert!(memory.0.unwrap().taken.lock().short_by_client.is_empty());
    }

    #[test]
    fn bytes_count_until_nobody_has_a_piece_of_them() {
        let memory = AnswerMemory::new(8 * MIB as u64);
        let answer = || vec![Bytes::from(vec![7; MIB]), Bytes::from(vec![8; MIB])];
        let held: Vec<_> = std::iter::from_fn(|| memory.hold(1, answer()).ok()).collect();
        assert_eq!(held.len(), 2, "one client gets half");
        drop(memory.hold_watched(1, answer()).expect("it counts for the other watchers"));
        assert_eq!(memory.hold(2, answer()).unwrap().concat(), answer().concat());
        let slice = held[0][1].slice(5..6);
        drop(held);
        let refused = memory.take(1, 5 * MIB).unwrap_err();
        assert!(is_share_refusal(&refused), "a slice keeps its answer: {refused}");
        assert!(!is_share_refusal(&memory.take(2, 7 * MIB).unwrap_err()), "there is no room for any client");
        drop(slice);
        assert!(memory.take(1, 8 * MIB).is_ok());
        assert!(memory.take(1, 8 * MIB + 1).is_err() && memory.take(1, UNCOUNTED).unwrap().is_none());
        assert!(memory.0.unwrap().taken.lock().by_client.is_empty());
    }
}
