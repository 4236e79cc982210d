//! Watch requests over HTTP: one read by its own path (W1), several reads by `GET /watch` (W10).

use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use mesh_bus::{Encoding, Format};
use mesh_chassis::accept::accepts_type;
use mesh_problem::{MALFORMED, NOT_MAPPED, Problem};
use proto_msgs::OperationInfo;
use warp::reply::Response;

use crate::{
    admission::ClientContext,
    ask::{cache::Question, call_context::CallContext, heads::HeadSource},
    decode::{
        self, Decoded,
        percent::PathField,
        preferences::Handling,
        query::Parameters,
        unknown_names::{self, UnknownNames},
    },
    route::routes::{RouteMatch, Routes},
    watch::{
        event_stream::{EventStream, MEDIA_TYPE},
        registry::{OpenStream, Watches},
    },
};

/// The parameter with a read's path and query.
pub(crate) const READ: &str = "read";

/// Most reads on one stream (W10).
const MAX_READS: usize = 16;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Whether the client requests events: it accepts `text/event-stream` and not also JSON. Clients that accept both
/// list every format they can read.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    accepts_type(headers, MEDIA_TYPE) && !accepts_type(headers, "application/json")
}

/// The height in `Last-Event-ID` of a reconnecting client (W6). A value that is not a height is ignored.
pub(crate) fn last_id(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(LAST_EVENT_ID)?.to_str().ok()?.trim();
    let is_plain = text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// A read to watch.
#[derive(Debug, Clone)]
pub(crate) struct WatchedRead {
    pub(crate) question: Arc<Question>,
    pub(crate) source: HeadSource,
}

impl WatchedRead {
    /// A read of this operation.
    ///
    /// # Errors
    /// When it is as of a block (B5).
    pub(crate) fn new(operation: &OperationInfo, question: Question) -> Result<Self, Problem> {
        if question.at_block.is_some() {
            return Err(unknown_names::watch_at_block());
        }
        let source = if operation.follows_node { HeadSource::Node } else { HeadSource::Store };
        Ok(Self { question: Arc::new(question), source })
    }
}

/// The reads of a request.
pub(crate) struct WatchRequest {
    /// At least one read, or the first failure.
    reads: Result<Vec<WatchedRead>, Problem>,
    /// Whether events are named by the index of their read.
    is_indexed: bool,
    /// The unknown names of all reads, which are ignored (J11).
    pub(crate) ignored: UnknownNames,
}

impl WatchRequest {
    /// A watch of one read.
    pub(crate) fn one(
        operation: &'static OperationInfo,
        path: &[PathField],
        query: &str,
        handling: Handling,
    ) -> Self {
        let (read, ignored) = decode_read(operation, path, query, handling);
        Self { reads: read.map(|read| vec![read]), is_indexed: false, ignored }
    }

    /// A watch of all reads in the query of `GET /watch`.
    pub(crate) fn several(routes: &Routes, query: &str, handling: Handling) -> Self {
        let (mut reads, mut ignored) = (Vec::new(), UnknownNames::default());
        let decoded = Parameters::parse(query).and_then(|parameters| {
            let (targets, unknown) = parameters.only(READ, handling)?;
            ignored = unknown;
            if targets.is_empty() || targets.len() > MAX_READS {
                let reason = format!("{READ} is given 1 to {MAX_READS} times");
                return Err(Problem::invalid(MALFORMED, reason));
            }
            for (index, target) in targets.iter().enumerate() {
                let (read, unknown) = decode_target(routes, target, handling);
                ignored.append(unknown);
                reads.push(read.map_err(|problem| in_read(index, problem))?);
            }
            Ok(())
        });
        Self { reads: decoded.map(|()| reads), is_indexed: true, ignored }
    }

    /// How many reads it has; each counts as a request.
    pub(crate) fn reads(&self) -> usize {
        self.reads.as_ref().map_or(0, Vec::len)
    }

    /// Responds with the event stream.
    ///
    /// # Errors
    /// The errors of a plain read, and a full watch limit.
    pub(crate) async fn answer(
        self,
        watches: &Arc<Watches>,
        client: &ClientContext,
        headers: &HeaderMap,
        context: &CallContext,
    ) -> Result<Response, Problem> {
        let reads = self.reads?;
        let permit = watches.permit(client)?;
        // Several reads have different heights, so `Last-Event-ID` does not apply (W10).
        let last_id = last_id(headers).filter(|_| !self.is_indexed);
        let watching = reads.iter().enumerate().map(|(index, read)| async move {
            let watcher = watches.watch(&read.question, read.source, last_id, context).await;
            watcher.map_err(|problem| if self.is_indexed { in_read(index, problem) } else { problem })
        });
        let watchers = futures_util::future::try_join_all(watching).await?;
        let open = OpenStream::new(watches, &client.connection, permit);
        Ok(EventStream::new(watchers, self.is_indexed, open).into_response())
    }
}

/// The read of a path and query.
pub(crate) fn decode_target(
    routes: &Routes,
    target: &str,
    handling: Handling,
) -> (Result<WatchedRead, Problem>, UnknownNames) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match routes.find(path) {
        Some(RouteMatch::Operation(operation, path)) if operation.is_watchable() => {
            decode_read(operation, &path, query, handling)
        }
        Some(_) => (Err(Problem::invalid(MALFORMED, "this cannot be watched")), UnknownNames::default()),
        None => (Err(Problem::not_found(NOT_MAPPED, "no such path")), UnknownNames::default()),
    }
}

fn decode_read(
    operation: &'static OperationInfo,
    path: &[PathField],
    query: &str,
    handling: Handling,
) -> (Result<WatchedRead, Problem>, UnknownNames) {
    let Decoded { question, ignored } = decode::from_http(operation, path, query, &[], false, handling);
    // On one line (W1), so that `pretty` changes nothing.
    let encoding = Encoding { format: Format::Json, gzip: false };
    let read = question.and_then(|question| WatchedRead::new(operation, Question { encoding, ..question }));
    (read, ignored)
}

/// Adds the index of the read to a problem.
fn in_read(index: usize, mut problem: Problem) -> Problem {
    for detail in &mut problem.details {
        let separator = if detail.inner.is_empty() { "" } else { ": " };
        detail.inner = format!("{READ} {index}{separator}{}", detail.inner);
    }
    problem
}
