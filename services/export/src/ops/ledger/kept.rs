//! Walks whose pull has got all it asked for, for the next pull of the same export: it then begins with what was read
//! meanwhile, where it would have to wait for the database. Any replica answers any pull without them.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use mesh_bus::Position;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::walk::Filter;

/// Most walks, each with the rows of about one pull and the accounts that it has met.
const AT_MOST: usize = 16;
/// A reader that is slower than this does not wait for the database anyway.
const KEPT_FOR: Duration = Duration::from_secs(2);

/// Walks (`W`) that may be gone on with.
pub(crate) struct Kept<W> {
    walks: Mutex<VecDeque<One<W>>>,
}

struct One<W> {
    filter: Filter,
    at: Position,
    walk: W,
    until: Instant,
}

impl<W> Default for Kept<W> {
    fn default() -> Self {
        Self { walks: Mutex::default() }
    }
}

impl<W: Send + 'static> Kept<W> {
    /// Keeps the walk along these entries that stands at a position, in place of the oldest when there are too many.
    pub(crate) fn keep(self: &Arc<Self>, filter: Filter, at: Position, walk: W) {
        let until = Instant::now() + KEPT_FOR;
        {
            let mut walks = self.walks.lock();
            if walks.len() >= AT_MOST {
                walks.pop_front();
            }
            walks.push_back(One { filter, at, walk, until });
        }
        let kept = Arc::downgrade(self);
        tokio::spawn(async move {
            sleep(KEPT_FOR).await;
            if let Some(kept) = kept.upgrade() {
                kept.forget(until);
            }
        });
    }

    /// Gives the walk along these entries that stands at a position, if it is kept.
    pub(crate) fn take(&self, filter: &Filter, at: &Position) -> Option<W> {
        let mut walks = self.walks.lock();
        let found = walks.iter().position(|one| one.at == *at && one.filter == *filter)?;
        walks.remove(found).map(|one| one.walk)
    }

    /// Lets go of those that are kept no longer than until then.
    fn forget(&self, now: Instant) {
        self.walks.lock().retain(|one| one.until > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(party: &str) -> Filter {
        Filter { party: party.to_owned(), asset: "X".to_owned(), until: None }
    }

    fn at(place: u8) -> Position {
        Position::new(vec![place]).unwrap()
    }

    #[tokio::test]
    async fn a_walk_is_given_once_to_whoever_goes_on_with_it() {
        let kept = Arc::new(Kept::default());
        kept.keep(of("p"), at(1), "p at 1");
        kept.keep(of("q"), at(1), "q at 1");
        assert_eq!(kept.take(&of("p"), &at(2)), None);
        assert_eq!(kept.take(&of("r"), &at(1)), None);
        assert_eq!(kept.take(&of("q"), &at(1)), Some("q at 1"));
        assert_eq!(kept.take(&of("q"), &at(1)), None);
        assert_eq!(kept.take(&of("p"), &at(1)), Some("p at 1"));
    }

    #[tokio::test]
    async fn walks_are_kept_for_a_while_and_not_too_many() {
        let kept = Arc::new(Kept::default());
        for place in 0..=AT_MOST {
            kept.keep(of("p"), at(u8::try_from(place).unwrap()), place);
        }
        assert_eq!(kept.take(&of("p"), &at(0)), None, "the oldest");
        assert_eq!(kept.take(&of("p"), &at(1)), Some(1));
        let until = kept.walks.lock().back().unwrap().until;
        kept.keep(of("p"), at(99), 99);
        kept.forget(until);
        assert_eq!(kept.walks.lock().len(), 1);
        assert_eq!(kept.take(&of("p"), &at(99)), Some(99));
    }
}
