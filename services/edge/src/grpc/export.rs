//! A download as a stream of `google.api.HttpBody` (contract section 6): the type in every message, what the file is
//! in the first one, and a status at the end that says whether it is whole.

use bytes::Bytes;
use futures_util::{Stream, stream};
use mesh_bus::{OpenReply, PullStream};
use mesh_problem::Problem;
use prost_reflect::{prost::Message, prost_types::Any};
use proto_msgs::google::api::HttpBody;
use tokio::time::{Instant, timeout_at};

use crate::exports::ExportPlace;

const INFO_TYPE: &str = "type.googleapis.com/api.v2.ExportInfo";

/// Bytes of the file in one message at most (S5): a client that stands still holds no more of it.
const DATA_BYTES: usize = 64 << 10;

struct State {
    pulled: PullStream,
    content_type: String,
    extensions: Vec<Any>,
    rest: Bytes,
    until: Option<Instant>,
    is_over: bool,
    _place: ExportPlace,
}

/// The messages of a download; it breaks off at a client's own deadline. The place is free when nobody reads them any more.
pub(super) fn messages(
    opened: OpenReply,
    pulled: PullStream,
    until: Option<Instant>,
    place: ExportPlace,
) -> impl Stream<Item = Result<Vec<Bytes>, Problem>> + Send + 'static {
    let info = Any { type_url: INFO_TYPE.to_owned(), value: opened.info.encode_to_vec() };
    let state = State {
        pulled,
        content_type: opened.content_type,
        extensions: vec![info],
        rest: Bytes::new(),
        until,
        is_over: false,
        _place: place,
    };
    stream::unfold(state, |mut state| async move {
        let message = state.next().await?;
        state.is_over = message.is_err();
        Some((message, state))
    })
}

impl State {
    async fn next(&mut self) -> Option<Result<Vec<Bytes>, Problem>> {
        if self.is_over {
            return None;
        }
        while self.rest.is_empty() {
            match self.pull().await? {
                Ok(bytes) => self.rest = bytes,
                Err(problem) => return Some(Err(problem)),
            }
        }
        let message = HttpBody {
            content_type: self.content_type.clone(),
            data: self.rest.split_to(self.rest.len().min(DATA_BYTES)),
            extensions: std::mem::take(&mut self.extensions),
        };
        Some(Ok(vec![message.encode_to_vec().into()]))
    }

    async fn pull(&mut self) -> Option<Result<Bytes, Problem>> {
        let Some(until) = self.until else { return self.pulled.next().await };
        let late =
            || Some(Err(Problem::deadline_exceeded("the time of the call was over before the download")));
        timeout_at(until, self.pulled.next()).await.unwrap_or_else(|_| late())
    }
}
