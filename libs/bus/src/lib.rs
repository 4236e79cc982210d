//! The message bus: typed asking and answering over NATS by its service convention, and streams that are pulled.
//!
//! What travels: the request as protobuf, the reply in the encoding that the asker wants, a [`Problem`] as
//! JSON. A request carries its deadline, request id and trace in headers. The only room that imports the
//! NATS client; it knows neither HTTP nor SQL.
//!
//! [`Problem`]: mesh_problem::Problem

mod announcement;
mod answering;
mod ask;
mod config;
mod connection;
mod encoding;
mod headers;
mod inbox;
mod leaving;
mod link;
mod load;
mod metrics;
mod pace;
pub mod permissions;
mod replicas;
mod replying;
mod serve;
mod stats;
mod stream;
mod survey;

pub use announcement::{
    ANNOUNCE_INTERVAL, Announcement, AnnouncementStream, NodeStatus, SegmentStatus, StoreStatus,
};
pub use answering::{Answer, AnswerFuture, AnswerResult, Ask, CancelOnDrop, Head, RequestScope};
pub use ask::{AskOptions, Reply, Target};
pub use config::{BusConfig, Credentials};
pub use connection::{Bus, BusError};
pub use encoding::{Encoding, Format};
pub use serve::{Limits, Readiness, Router, ServiceHandle};
pub use stream::{
    Chunks, MAX_CHUNK_BYTES, MAX_POSITION_BYTES, MAX_POSITIONS_AHEAD, Open, OpenReply, Piece, Position, Pull,
    PullBudget, PullLimits, PullOptions, PullStream, Totals, simulator,
};
pub use survey::{EndpointStats, ReplicaStats, Survey};
