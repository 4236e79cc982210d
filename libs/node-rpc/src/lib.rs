//! The RPC of a consensus node (CometBFT, JSON-RPC over HTTP): its address, requests, and the parts of its replies
//! that several programs read.

mod reply;
mod request;
mod url;

pub use self::{
    reply::{NodeInfo, ReplyError, Status, SyncInfo, foreign_answer, read_reply, retry_after},
    request::{client, client_builder, describe, read_body},
    url::NodeUrl,
};
