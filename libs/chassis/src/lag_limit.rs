//! Readiness by lag: a replica is unready while the store is too far behind the consensus node.

use std::time::Duration;

use crate::Env;

/// Most blocks that the store may be behind the consensus node before a service is unready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LagLimit {
    at_most: u64,
}

impl LagLimit {
    /// How long an announced height of the node is used.
    pub const HEIGHT_MAX_AGE: Duration = Duration::from_secs(10);

    /// Reads `MESH_MAX_LAG_BLOCKS`; 0, the default, allows any lag.
    pub fn read(env: &mut Env) -> Self {
        Self { at_most: env.or("MESH_MAX_LAG_BLOCKS", 0) }
    }

    /// Checks that the store is not too far behind. Passes when the node's height is unknown; a store without
    /// blocks is at 0.
    ///
    /// # Errors
    /// When the lag is greater than allowed.
    pub fn check(self, node: Option<u64>, store: Option<u64>) -> Result<(), String> {
        let Some(node) = node else { return Ok(()) };
        let lag = node.saturating_sub(store.unwrap_or(0));
        if self.at_most == 0 || lag <= self.at_most {
            return Ok(());
        }
        Err(format!("the store is {lag} blocks behind the node, more than {}", self.at_most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lag(at_most: &str) -> LagLimit {
        LagLimit::read(&mut Env::of([("MESH_MAX_LAG_BLOCKS".to_owned(), at_most.to_owned())]))
    }

    #[test]
    fn only_more_than_the_limit_is_too_much() {
        assert!(lag("5").check(Some(15), Some(10)).is_ok());
        assert!(lag("5").check(Some(3), Some(10)).is_ok(), "the store may know more than the news");
        assert!(lag("5").check(None, None).is_ok());
        let error = lag("5").check(Some(16), Some(10)).expect_err("it is 6 blocks behind");
        assert!(error.contains("6 blocks"), "{error}");
        assert!(lag("5").check(Some(6), None).is_err(), "an empty store is behind");
        for off in ["0", ""] {
            assert!(lag(off).check(Some(u64::MAX), None).is_ok());
        }
    }
}
