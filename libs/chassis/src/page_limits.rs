//! Limits of the number of rows, used by the services that read lists and by the edge, which shows them to
//! clients.

use crate::Env;

/// Limits of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// Rows of a page when the request names no number.
    pub page_default: usize,
    /// Most rows of a page; larger requests are reduced to it.
    pub page_max: usize,
    /// Most accounts in one unpaged listing.
    pub accounts_max: usize,
}

impl PageLimits {
    /// Reads `MESH_PAGE_DEFAULT`, `MESH_PAGE_MAX` and `MESH_ACCOUNTS_MAX_ROWS`.
    pub fn read(env: &mut Env) -> Self {
        let rows = Self {
            page_default: env.positive("MESH_PAGE_DEFAULT", 1000),
            page_max: env.positive("MESH_PAGE_MAX", 5000),
            accounts_max: env.positive("MESH_ACCOUNTS_MAX_ROWS", 100_000),
        };
        if rows.page_default > rows.page_max {
            env.mistake("MESH_PAGE_DEFAULT must not exceed MESH_PAGE_MAX");
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_above_the_greatest_is_a_mistake() {
        let read = |greatest: &str| {
            let mut env = Env::of([("MESH_PAGE_MAX".to_owned(), greatest.to_owned())]);
            (PageLimits::read(&mut env).page_max, env.mistakes().len())
        };
        assert_eq!(read("1000"), (1000, 0));
        assert_eq!(read("999"), (999, 1));
    }
}
