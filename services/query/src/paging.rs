//! The operations with paged lists: pagination and filters of a request in, nodes with their cursors and page
//! info out.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{List, PageRequest, ReadError, Row, Value, Window};
use proto_msgs::{
    Operation,
    v2::{PageInfo, Pagination},
};

use crate::Query;

/// A request of the contract that is answered by a page of a list.
pub(crate) trait PagedList: Operation {
    /// What is listed.
    type Node;

    /// The application number of a read that fails.
    const FAILED: u32;
    /// The list of the store.
    const LIST: &'static List;

    /// Which page is asked for (contract section 3).
    fn pagination(&self) -> Option<&Pagination>;

    /// The values of the list's filters, as in [`List::statement`].
    fn filters(self) -> Result<Vec<Option<Value>>, Problem>;

    /// Reads a node from a row.
    fn node(row: &Row) -> Result<Self::Node, ReadError>;

    /// The reply with these nodes and their cursors, in display order.
    fn reply(nodes: Vec<(Self::Node, String)>, page_info: Option<PageInfo>) -> Self::Reply;
}

impl<R: PagedList> Handler<Ask<R>> for Query {
    type Result = AnswerFuture<R::Reply>;

    fn handle(&mut self, Ask(request, scope): Ask<R>, _: &mut Context<Self>) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let page = request.pagination().map_or_else(PageRequest::default, page_request);
            let window = Window::read(R::LIST, page, sizes)?;
            let filters = request.filters()?;
            let failed = |error: ReadError| error.problem(R::FAILED);
            let page = store.page(R::LIST, &window, filters).await.map_err(failed)?;
            let nodes = page.edges.into_iter().map(|edge| Ok((R::node(&edge.row)?, edge.cursor)));
            let nodes: Vec<_> = nodes.collect::<Result<_, ReadError>>().map_err(failed)?;
            let cursor =
                |edge: Option<&(R::Node, String)>| edge.map(|(_, cursor)| cursor.clone()).unwrap_or_default();
            let info = PageInfo {
                start_cursor: cursor(nodes.first()),
                end_cursor: cursor(nodes.last()),
                has_next_page: page.has_next_page,
                has_previous_page: page.has_previous_page,
            };
            Ok(Answer::at(page.head, R::reply(nodes, Some(info))))
        })
    }
}

fn page_request(pagination: &Pagination) -> PageRequest<'_> {
    PageRequest {
        first: pagination.first,
        after: pagination.after.as_deref(),
        last: pagination.last,
        before: pagination.before.as_deref(),
        newest_first: pagination.newest_first,
    }
}
