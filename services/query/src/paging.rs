//! The operations with paged lists: pagination and filters of a request in, nodes with their cursors and page
//! info out.

use std::pin::Pin;

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, AnswerResult, Ask, Format, offload};
use mesh_problem::Problem;
use mesh_store::{
    List, PageEdge, PageRequest, PageRows, PageSizes, ReadError, RowReader, Store, Value, Window,
};
use prost::Message;
use proto_msgs::{
    PagedOperation,
    v2::{PageInfo, Pagination},
};

use crate::Query;

/// Most bytes of an answer's rows in protobuf (P5): clients of gRPC accept messages of 4 MiB.
pub(crate) const MAX_BYTES: usize = 3 << 20;

/// Answers with more rows are made outside the actor's thread.
pub(crate) const INLINE_ROWS: usize = 200;

/// Most bytes of tags and lengths of an edge.
const EDGE_OVERHEAD: usize = 12;

/// A request of the contract that is answered by a page of a list.
pub(crate) trait PagedList: PagedOperation {
    /// The application number of a read that fails.
    const FAILED: u32;
    /// The list of the store.
    const LIST: &'static List;

    /// Whether pages are always in the order of the key; the request cannot reverse it.
    const HAS_FIXED_ORDER: bool = false;

    /// The values of the list's filters, as in [`List::statement`].
    fn filters(self) -> Result<Vec<Option<Value>>, Problem>;

    /// Reads a node from a row.
    fn node(row: &RowReader<'_>) -> Result<Self::Node, ReadError>;

    /// The read of a request without pagination, for a list that is then answered whole.
    fn unpaged(&self, _: &Query, _: Format) -> Option<Unpaged<Self::Reply>> {
        None
    }
}

/// The read of a list that is answered whole.
pub(crate) type Unpaged<R> = Pin<Box<dyn Future<Output = AnswerResult<R>>>>;

impl<R: PagedList> Handler<Ask<R>> for Query {
    type Result = AnswerFuture<R::Reply>;

    fn handle(&mut self, Ask(request, scope): Ask<R>, _: &mut Context<Self>) -> Self::Result {
        if let Some(unpaged) = request.unpaged(self, scope.format()) {
            return scope.run(unpaged);
        }
        scope.run(page(self.store.clone(), self.sizes, request))
    }
}

async fn page<R: PagedList>(store: Store, sizes: PageSizes, request: R) -> AnswerResult<R::Reply> {
    let mut page = request.pagination().map_or_else(PageRequest::default, page_request);
    if R::HAS_FIXED_ORDER {
        page.newest_first = Some(false);
    }
    let window = Window::read(R::LIST, page, sizes)?;
    let (at_block, chain_id) = (request.at_block(), request.chain_id().map(str::to_owned));
    let filters = request.filters()?;
    let past = store.past(at_block, chain_id.as_deref(), R::FAILED).await?;
    let rows = store.page_rows(R::LIST, &window, filters, past.as_ref()).await;
    let rows = rows.map_err(|error| error.problem(R::FAILED))?;
    let is_final = past.is_some_and(|past| past.is_sealed);
    let answer = offload(rows.count() > INLINE_ROWS, move || answer::<R>(&store, &window, rows)).await?;
    Ok(answer.finally(is_final))
}

fn answer<R: PagedList>(store: &Store, window: &Window, rows: PageRows) -> AnswerResult<R::Reply> {
    let failed = |error: ReadError| error.problem(R::FAILED);
    let page = rows.page(R::LIST, window).map_err(failed)?;
    let mut nodes = nodes::<R>(store, page.edges).map_err(failed)?;
    let bytes = |(node, cursor): &(R::Node, String)| node.encoded_len() + cursor.len() + EDGE_OVERHEAD;
    let [is_cut_behind, is_cut_ahead] = window.cut(&mut nodes, MAX_BYTES, bytes);
    let cursor =
        |edge: Option<&(R::Node, String)>| edge.map(|(_, cursor)| cursor.clone()).unwrap_or_default();
    let info = PageInfo {
        start_cursor: cursor(nodes.first()),
        end_cursor: cursor(nodes.last()),
        has_next_page: page.has_next_page || is_cut_behind,
        has_previous_page: page.has_previous_page || is_cut_ahead,
    };
    Ok(Answer::at(page.head, R::page(nodes, info)))
}

/// The filter for a member of an enum, by its name; none for the first member, which stands for all.
pub(crate) fn chosen<E: Copy + Default + Eq>(member: E, name: fn(&E) -> &'static str) -> Option<Value> {
    (member != E::default()).then(|| Value::Text(name(&member).to_owned()))
}

/// The nodes of the rows of a page, with their cursors.
pub(crate) fn nodes<R: PagedList>(
    store: &Store,
    edges: Vec<PageEdge>,
) -> Result<Vec<(R::Node, String)>, ReadError> {
    let node = |edge: PageEdge| {
        let row = RowReader::of_list(&edge.row, R::LIST, store.unreadable());
        Ok((R::node(&row)?, edge.cursor))
    };
    edges.into_iter().map(node).collect()
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
