//! HTTP answers: status, headers and body of replies, errors and downloads.

pub(crate) mod answer;
pub(crate) mod chunk_form;
pub(crate) mod download;
pub(crate) mod gzip;
pub(crate) mod handling;
pub(crate) mod notes;
mod range;
pub(crate) mod rpc_status;
