//! Compares a paged list of the recording with the pages that the contract requires (section 3).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    paging::page::{PageRequest, View},
    recorded_network::check::Check,
};

impl View {
    /// The list with the rows whose node passes.
    pub(crate) fn filtered(&self, passes: impl Fn(&Value) -> bool) -> Self {
        let rows = self.rows.iter().filter(|row| passes(&row.node)).cloned().collect();
        Self { list: self.list, path: self.path.clone(), rows }
    }

    /// The combinations of these fields' values that occur in rows.
    pub(crate) fn occurring<'a, const N: usize>(&'a self, fields: [&str; N]) -> BTreeSet<[&'a str; N]> {
        self.rows.iter().map(|row| fields.map(|field| row.node[field].as_str().unwrap())).collect()
    }

    /// Compares the answer to a path that contains all rows in one page.
    pub(crate) async fn compare(&self, check: &mut Check<'_>, path: &str) {
        let page = self.expected(&PageRequest::default());
        check.same(path, &page.as_json(self.list), self.rows.len()).await;
    }

    /// Walks through pages of a size, in both display orders and from both ends, and past the last page.
    pub(crate) async fn walk(&self, check: &mut Check<'_>, path: &str, size: usize) {
        let path = if path.contains('?') { path.to_owned() } else { format!("{path}?") };
        for oldest_first in [false, true] {
            let display = self.displayed(oldest_first);
            for (ask, backwards) in [(PageRequest::first(size), false), (PageRequest::last(size), true)] {
                let ask = ask.in_order(oldest_first);
                let (mut next, mut walked) = (ask.clone(), 0);
                loop {
                    let page = self.expected(&next);
                    let rows = page.edges.len();
                    check.same(&format!("{path}{}", next.query()), &page.as_json(self.list), rows).await;
                    if rows == 0 {
                        break;
                    }
                    walked += rows;
                    let end = if backwards { display.len() - walked } else { walked - 1 };
                    next = ask.clone().at_position(self.list, &display[end].key);
                }
            }
        }
    }
}
