//! Conversion between the contract's pages and the store's: pagination parameters in, nodes with their cursors
//! and page info out.

use mesh_problem::Problem;
use mesh_store::{List, PageRequest, PageSizes, ReadError, Row, Store, Value, Window};
use proto_msgs::v2::{PageInfo, Pagination};

/// A page of the contract.
pub(crate) struct Page<N> {
    /// The newest block that was read together with the rows: height and nanoseconds since the Unix epoch.
    pub(crate) head: Option<(u64, i64)>,
    /// The nodes with their cursors, in display order.
    pub(crate) edges: Vec<(N, String)>,
    /// The first and last cursor, and whether there are pages before and after this one (P9, P10).
    pub(crate) info: PageInfo,
}

/// The window of a request's pagination (contract section 3).
pub(crate) fn window(
    list: &List,
    pagination: Option<&Pagination>,
    sizes: PageSizes,
) -> Result<Window, Problem> {
    let request = pagination.map_or_else(PageRequest::default, |pagination| PageRequest {
        first: pagination.first,
        after: pagination.after.as_deref(),
        last: pagination.last,
        before: pagination.before.as_deref(),
        newest_first: pagination.newest_first,
    });
    Window::read(list, request, sizes)
}

/// Reads a page of a list; `filters` as in [`List::statement`].
pub(crate) async fn read<N>(
    store: &Store,
    list: &'static List,
    window: &Window,
    filters: Vec<Option<Value>>,
    node: impl Fn(&Row) -> Result<N, ReadError>,
) -> Result<Page<N>, ReadError> {
    let page = store.page(list, window, filters).await?;
    let edges = page.edges.into_iter().map(|edge| Ok((node(&edge.row)?, edge.cursor)));
    let edges = edges.collect::<Result<Vec<_>, ReadError>>()?;
    let cursor = |edge: Option<&(N, String)>| edge.map(|(_, cursor)| cursor.clone()).unwrap_or_default();
    let info = PageInfo {
        start_cursor: cursor(edges.first()),
        end_cursor: cursor(edges.last()),
        has_next_page: page.has_next_page,
        has_previous_page: page.has_previous_page,
    };
    Ok(Page { head: page.head, edges, info })
}
