//! One table of routes, read off the contract, and the pages beside it: a request matches one row or none.

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use proto_msgs::{Contract, Method, OperationInfo, Segment};

use crate::{
    now,
    pages::{Page, Pages},
};

/// All routes, fixed paths before patterns.
#[derive(Debug, Clone)]
pub(crate) struct Routes {
    rows: &'static [OperationInfo],
    /// Indexes of `rows`, those with more fixed segments first.
    order: Vec<usize>,
    pages: Pages,
}

/// What a path matches.
#[derive(Debug, Clone)]
pub(crate) enum Matched {
    /// An operation, and the values of its path's fields.
    Operation(&'static OperationInfo, Vec<(&'static str, String)>),
    /// What the edge answers by itself.
    Page(Arc<Page>),
    /// What the console shows of the mesh at this moment.
    Now,
}

impl Routes {
    /// The contract's routes, and these pages.
    pub(crate) fn of_contract(pages: Pages) -> Self {
        let rows = Contract::get().operations();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|row| {
            rows[*row].path.iter().filter(|segment| matches!(segment, Segment::Field(_))).count()
        });
        Self { rows, order, pages }
    }

    /// The row of a path. Segments are compared percent-decoded.
    pub(crate) fn find(&self, path: &str) -> Option<Matched> {
        if let Some(page) = self.pages.get(path) {
            return Some(Matched::Page(Arc::clone(page)));
        }
        if path == now::PATH {
            return Some(Matched::Now);
        }
        let segments: Vec<String> = path
            .strip_prefix('/')?
            .split('/')
            .map(|text| percent_decode_str(text).decode_utf8_lossy().into_owned())
            .collect();
        self.order.iter().find_map(|row| {
            let row = &self.rows[*row];
            fields(&row.path, &segments).map(|fields| Matched::Operation(row, fields))
        })
    }
}

impl Matched {
    /// What it is counted as.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Operation(operation, _) => &operation.name,
            Self::Page(page) => page.name,
            Self::Now => now::NAME,
        }
    }

    /// The path with its variables' names, as traces call it; a page is at a fixed one.
    pub(crate) fn route(&self, path: &str) -> String {
        match self {
            Self::Operation(operation, _) => spelled(operation),
            Self::Page(_) | Self::Now => path.to_owned(),
        }
    }

    /// What `Allow` says.
    pub(crate) fn allow(&self) -> &'static str {
        match self {
            Self::Operation(OperationInfo { method: Method::Post, .. }, _) => "POST, OPTIONS",
            _ => "GET, HEAD, OPTIONS",
        }
    }
}

/// The path of an operation, with the names of its fields in braces.
pub(crate) fn spelled(operation: &OperationInfo) -> String {
    let segment = |segment: &Segment| match segment {
        Segment::Fixed(text) => format!("/{text}"),
        Segment::Field(name) => format!("/{{{name}}}"),
    };
    operation.path.iter().map(segment).collect()
}

fn fields<'a>(pattern: &'a [Segment], segments: &[String]) -> Option<Vec<(&'a str, String)>> {
    if pattern.len() != segments.len() {
        return None;
    }
    let mut fields = Vec::new();
    for (expected, given) in pattern.iter().zip(segments) {
        match expected {
            Segment::Fixed(text) if text == given => {}
            Segment::Fixed(_) => return None,
            Segment::Field(name) => fields.push((name.as_str(), given.clone())),
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use mesh_chassis::{Config as _, Env};

    use super::*;
    use crate::{config::Config, pages};

    fn routes() -> &'static Routes {
        static ROUTES: LazyLock<Routes> =
            LazyLock::new(|| Routes::of_contract(pages::all(&Config::read(&mut Env::default())).unwrap()));
        &ROUTES
    }

    fn name(path: &str) -> Option<&'static str> {
        Some(routes().find(path)?.name())
    }

    #[test]
    fn a_path_matches_one_row_or_none() {
        assert_eq!(name("/accounts"), Some("ListAccounts"));
        assert_eq!(name("/accounts/"), None);
        assert_eq!(name("/api/v2/%63andle"), Some("ListCandleData"));
        assert_eq!(name("/api/v2/withdrawal/ab"), Some("GetWithdrawal"));
        assert_eq!(name("/api/v2/withdrawal/a/b"), None);
        assert_eq!(name("/api/v2/withdrawal"), None);
        assert_eq!(name("/health"), Some("health"));
        assert_eq!(name("/docs"), Some("docs"));
        assert_eq!(name("/docs/"), None);
        assert_eq!(name("accounts"), None);
        assert_eq!(name("/"), Some("console"));
        assert_eq!(name("/console/now"), Some("console"));
        assert_eq!(name("/console"), None);
        assert_eq!(name("/console/app.js"), None, "only by the name that its content gives it");
    }

    #[test]
    fn a_fixed_path_wins_over_a_pattern() {
        assert_eq!(name("/transaction/check"), Some("CheckTransaction"));
        assert_eq!(name("/transaction/checks"), Some("GetTransaction"));
    }

    #[test]
    fn the_value_of_a_path_is_decoded_after_it_is_cut() {
        let Some(Matched::Operation(_, fields)) = routes().find("/api/v2/withdrawal/a%2Fb%20") else {
            panic!("no match")
        };
        assert_eq!(fields, [("id", "a/b ".to_owned())]);
    }
}
