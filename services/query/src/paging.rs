//! Conversion between the contract's pages and the store's: pagination parameters in, page info out.

use mesh_problem::Problem;
use mesh_store::{ListKey, Page, PageRequest, PageSizes, ReadError, Row, Window, head_of};
use proto_msgs::v2::{PageInfo, Pagination};

/// The window of a request's pagination (contract section 3).
pub(crate) fn window<K: ListKey>(
    pagination: Option<&Pagination>,
    sizes: PageSizes,
) -> Result<Window<K>, Problem> {
    let request = pagination.map_or_else(PageRequest::default, |pagination| PageRequest {
        first: pagination.first,
        after: pagination.after.as_deref(),
        last: pagination.last,
        before: pagination.before.as_deref(),
        newest_first: pagination.newest_first,
    });
    Window::read(request, sizes)
}

/// The first and last cursor of a page, and whether there are pages before and after it (P9, P10).
pub(crate) fn page_info<T>(page: &Page<T>) -> PageInfo {
    let cursor = |edge: Option<&(String, T)>| edge.map(|(cursor, _)| cursor.clone()).unwrap_or_default();
    PageInfo {
        start_cursor: cursor(page.edges.first()),
        end_cursor: cursor(page.edges.last()),
        has_next_page: page.has_next_page,
        has_previous_page: page.has_previous_page,
    }
}

/// The columns that every row of a list statement repeats: the head, and whether a row lies at the start of
/// the walk or behind it.
pub(crate) fn frame(rows: &[Row]) -> Result<(Option<(u64, i64)>, bool), ReadError> {
    match rows.first() {
        Some(row) => Ok((head_of(row)?, row.try_get("behind")?)),
        None => Ok((None, false)),
    }
}
