//! ListAllNetworkHistorySegments: the stored segments, newest first. Needs the object store, not the
//! database.

use actix::{Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use mesh_history::Segment;
use proto_msgs::{
    numbers::list_all_network_history_segments::SEGMENTS,
    v2::{HistorySegment, ListAllNetworkHistorySegmentsReply, ListAllNetworkHistorySegmentsRequest},
};

use crate::Export;

impl Handler<Ask<ListAllNetworkHistorySegmentsRequest>> for Export {
    type Result = AnswerFuture<ListAllNetworkHistorySegmentsReply>;

    fn handle(
        &mut self,
        Ask(_, scope): Ask<ListAllNetworkHistorySegmentsRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (listing, catalogue) = (self.listing.borrow().clone(), self.catalogue.clone());
        scope.run(async move {
            let list = listing.newest(&catalogue, SEGMENTS).await?;
            let mut segments: Vec<_> =
                list.segments.iter().rev().map(|segment| to_message(segment)).collect();
            // The one before it was removed, or never was.
            if let Some(first) = segments.last_mut() {
                first.previous_history_segment_id.clear();
            }
            Ok(ListAllNetworkHistorySegmentsReply { segments }.into())
        })
    }
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
