//! ListAllNetworkHistorySegments: the stored segments, newest first. Needs the object store, not the
//! database.

use actix::{Context, Handler};
use mesh_bus::{AnswerFuture, Ask, Format};
use mesh_history::Segment;
use mesh_problem::{Code, Problem};
use prost::Message as _;
use proto_msgs::{
    numbers::list_all_network_history_segments::SEGMENTS,
    v2::{HistorySegment, ListAllNetworkHistorySegmentsReply, ListAllNetworkHistorySegmentsRequest},
};

use crate::Export;

/// Most bytes of an answer over gRPC: what clients accept by default.
const MAX_BYTES: usize = 4 << 20;

impl Handler<Ask<ListAllNetworkHistorySegmentsRequest>> for Export {
    type Result = AnswerFuture<ListAllNetworkHistorySegmentsReply>;

    fn handle(
        &mut self,
        Ask(_, scope): Ask<ListAllNetworkHistorySegmentsRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (listing, catalogue) = (self.listing.borrow().clone(), self.catalogue.clone());
        let format = scope.format();
        scope.run(async move {
            let list = listing.newest(&catalogue).await.map_err(|cause| {
                Problem::internal(SEGMENTS, "the segments cannot be listed").caused_by(cause)
            })?;
            let segments = list.segments.iter().rev().map(|segment| to_message(segment)).collect();
            Ok(check_size(ListAllNetworkHistorySegmentsReply { segments }, format)?.into())
        })
    }
}

/// Refuses a list that a client of gRPC does not accept.
fn check_size(
    reply: ListAllNetworkHistorySegmentsReply,
    format: Format,
) -> Result<ListAllNetworkHistorySegmentsReply, Problem> {
    if format != Format::Protobuf || reply.encoded_len() <= MAX_BYTES {
        return Ok(reply);
    }
    let reason = "too many segments for one message, read them over HTTP";
    let inner = format!("{} segments: GET /api/v2/networkhistory/segments", reply.segments.len());
    Err(Problem::new(Code::FailedPrecondition, SEGMENTS, reason).with_inner(inner))
}

fn to_message(segment: &Segment) -> HistorySegment {
    // Heights fit: the parser of segment names refuses those above `i64::MAX`.
    let height = |height: u64| i64::try_from(height).unwrap_or(i64::MAX);
    HistorySegment {
        from_height: height(segment.height_from),
        to_height: height(segment.height_to),
        history_segment_id: segment.id.to_string(),
        previous_history_segment_id: segment.previous_id.map(|id| id.to_string()).unwrap_or_default(),
        database_version: segment.database_version.into(),
        chain_id: segment.chain_id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_clients_of_grpc_do_not_accept_is_refused() {
        let id = "a".repeat(64);
        let reply = |segments| ListAllNetworkHistorySegmentsReply {
            segments: (0..segments)
                .map(|_| HistorySegment {
                    history_segment_id: id.clone(),
                    previous_history_segment_id: id.clone(),
                    ..HistorySegment::default()
                })
                .collect(),
        };
        assert!(check_size(reply(30_000), Format::Protobuf).is_ok());
        let refused = check_size(reply(40_000), Format::Protobuf).unwrap_err();
        assert_eq!((refused.code, refused.number()), (Code::FailedPrecondition, SEGMENTS));
        assert!(check_size(reply(40_000), Format::Json).is_ok());
    }
}
