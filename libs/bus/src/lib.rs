//! The message bus: typed asking and answering over NATS by its service convention, and streams that are pulled.
//!
//! What travels: the request as protobuf, the reply in the encoding that the asker wants, a [`Problem`] as
//! JSON. A request carries its deadline, request id and trace in headers. The only room that imports the
//! NATS client; it knows neither HTTP nor SQL.
//!
//! [`Problem`]: mesh_problem::Problem

mod answering;
mod ask;
mod census;
mod config;
mod connection;
mod encoding;
mod headers;
mod inbox;
mod leaving;
mod link;
mod load;
mod metrics;
mod news;
mod pace;
pub mod permissions;
mod replicas;
mod replying;
mod serve;
mod stats;
mod stream;

pub use answering::{Answer, Answered, Answering, Ask, Asked, Head, WhileAwaited};
pub use ask::{AskOptions, Reply, Target};
pub use census::{Census, EndpointStats, ReplicaStats};
pub use config::{BusConfig, Credentials};
pub use connection::{Bus, BusError};
pub use encoding::{Encoding, Format};
pub use news::{News, NewsStream, NodeNews, REPEATED, SegmentNews, StoreNews};
pub use serve::{Door, Limits, Router, Serving};
pub use stream::{
    Budget, CHUNK_AT_MOST, Chunks, KNOWN_AHEAD, Open, Opened, POSITION_AT_MOST, Piece, Position, Pull,
    PullLimits, PullOptions, Pulled, Totals, simulator,
};
