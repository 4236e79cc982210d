//! The state of the work, for the readiness check.

use std::time::{Duration, Instant};

/// An operation of the store without an answer for this long makes the replica unready.
const STORE_SILENCE: Duration = Duration::from_secs(3);

/// The state of the work.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// Whether blocks are stored as they come, else why not.
    pub(crate) state: Result<(), String>,
    /// The heights of the store and of the node.
    pub(crate) heights: (Option<u64>, Option<u64>),
    /// When the operation of the store that is under way began.
    pub(crate) store_began: Option<Instant>,
}

impl Standing {
    /// Whether blocks are stored as they come.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.state.clone()?;
        match self.store_began.map(|began| began.elapsed()) {
            Some(silence) if silence >= STORE_SILENCE => {
                Err(format!("the database has not answered for {} s", silence.as_secs()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_silent_for_3_s_makes_the_replica_unready() {
        let check = |age| {
            let store_began = Instant::now().checked_sub(Duration::from_secs(age));
            Standing { state: Ok(()), heights: (None, None), store_began }.check()
        };
        assert_eq!(check(2), Ok(()));
        assert_eq!(check(4), Err("the database has not answered for 4 s".to_owned()));
    }
}
