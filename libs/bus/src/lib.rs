//! The message bus: typed requests and replies over NATS by its service convention, and streams that are
//! pulled.
//!
//! Requests are protobuf, replies have the requested encoding, a [`Problem`] is JSON. The deadline, request
//! id and trace of a request are headers. The only crate that uses the NATS client; it has no HTTP and no
//! SQL.
//!
//! [`Problem`]: mesh_problem::Problem

mod activity;
mod announcement;
mod answer;
mod ask;
mod config;
mod connect;
mod connection;
mod dispatch;
mod drain;
mod encoding;
mod error;
mod fair_queue;
mod headers;
mod hedge;
mod inbox;
mod line;
mod link;
mod liveness;
mod load;
mod metrics;
mod offload;
pub mod permissions;
mod replicas;
mod reply;
mod router;
mod serve;
mod service_call;
mod stats;
pub mod stream;
mod subjects;
mod survey;
mod target;
mod transit;

pub use announcement::{
    ANNOUNCE_INTERVAL, Announcement, AnnouncementStream, EdgePresence, HaltReason, IngestHalt, KeyUsage,
    NodeStatus, RELAY_RESULTS, SegmentStatus, StoreStatus,
};
pub use answer::{Answer, AnswerFuture, AnswerResult, Ask, CancelOnDrop, Head, RequestScope};
pub use ask::{AskOptions, FromOthers, Reply, is_busy};
pub use config::{BusConfig, Credentials, check_prefix, check_url};
pub use connection::Bus;
pub use encoding::{Encoding, Format, GZIP_LEVEL, gzip};
pub use error::BusError;
pub use line::Places;
pub use offload::offload;
pub use router::{Limits, Router};
pub use serve::{Readiness, ServiceHandle};
pub use service_call::ServiceCallError;
pub use stream::{
    Chunks, MAX_CHUNK_BYTES, MAX_POSITION_BYTES, MAX_POSITIONS_AHEAD, Open, OpenReply, Piece, Position, Pull,
    PullBudget, PullLimits, PullOptions, PullStream, Totals,
};
pub use survey::{EndpointStats, ReplicaStats, Survey, Surveyor};
pub use target::Target;
