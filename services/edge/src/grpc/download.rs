//! A download as a stream of `google.api.HttpBody` (contract section 6): the media type in every message, the
//! description of the file in the first one, and a status at the end.

use bytes::Bytes;
use futures_util::{Stream, stream};
use mesh_bus::{OpenReply, PullStream};
use mesh_problem::Problem;
use prost_reflect::{prost::Message, prost_types::Any};
use proto_msgs::google::api::HttpBody;
use tokio::time::{Instant, timeout_at};

use crate::{admission::client_limit::ClientPermit, respond::chunk_form::INFO_TYPE};

/// Most bytes of the file in one message (S5), so that a stalled client holds little memory.
const MAX_DATA: usize = 64 << 10;

struct State {
    pulled: PullStream,
    content_type: String,
    extensions: Vec<Any>,
    rest: Bytes,
    deadline: Option<Instant>,
    is_over: bool,
    _permit: ClientPermit,
}

/// The messages of a download, which fails at the client's deadline. Holds the permit until it is dropped.
pub(super) fn messages(
    opened: OpenReply,
    pulled: PullStream,
    deadline: Option<Instant>,
    permit: ClientPermit,
) -> impl Stream<Item = Result<Vec<Bytes>, Problem>> + Send + 'static {
    let info = Any { type_url: INFO_TYPE.to_owned(), value: opened.info.encode_to_vec() };
    let state = State {
        pulled,
        content_type: opened.content_type,
        extensions: vec![info],
        rest: Bytes::new(),
        deadline,
        is_over: false,
        _permit: permit,
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
            data: self.rest.split_to(self.rest.len().min(MAX_DATA)),
            extensions: std::mem::take(&mut self.extensions),
        };
        Some(Ok(vec![message.encode_to_vec().into()]))
    }

    async fn pull(&mut self) -> Option<Result<Bytes, Problem>> {
        let Some(deadline) = self.deadline else { return self.pulled.next().await };
        let late =
            || Some(Err(Problem::deadline_exceeded("the time of the call was over before the download")));
        timeout_at(deadline, self.pulled.next()).await.unwrap_or_else(|_| late())
    }
}
