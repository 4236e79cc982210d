//! The access log: a JSON line for each request, or for those that were refused or broke off, among the
//! service's other log lines. Of the client's text a line has the path of a known route and the request's id:
//! no query, header or body.

pub(crate) mod record;

use std::{net::IpAddr, sync::Arc};

use http::{Request, StatusCode};
use mesh_chassis::LogQueue;
use percent_encoding::percent_encode_byte;
use serde::Serialize;

use crate::{
    access_log::record::Record, admission::NO_OPERATION, config::AccessLogMode, route::routes::Routes,
};

/// Longest path that is written, bytes.
const MAX_PATH: usize = 256;

/// The log, where it is on.
pub(crate) struct AccessLog {
    is_all: bool,
    queue: LogQueue,
    routes: Arc<Routes>,
}

/// A line of the log; unknown members are left out.
#[derive(Debug, Default, Serialize)]
struct Line<'a> {
    timestamp: String,
    level: &'static str,
    message: &'static str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    operation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grpc_status: Option<u8>,
    /// Application numbers of a refusal, or of what broke a download.
    #[serde(skip_serializing_if = "<[u32]>::is_empty")]
    errors: &'a [u32],
    /// Why a request was refused before it was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'a str>,
    bytes: u64,
    duration_ms: f64,
    client: Option<IpAddr>,
    /// Name of its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    protocol: &'static str,
    ended: &'static str,
    target: &'static str,
}

impl AccessLog {
    /// The log of these routes; `None` when it is off.
    pub(crate) fn new(mode: AccessLogMode, queue: LogQueue, routes: Arc<Routes>) -> Option<Arc<Self>> {
        let is_all = mode == AccessLogMode::All;
        (mode != AccessLogMode::Off).then(|| Arc::new(Self { is_all, queue, routes }))
    }

    /// Begins the record of a request.
    pub(crate) fn begin<B>(
        self: &Arc<Self>,
        request: &Request<B>,
        client: IpAddr,
        key: Option<Arc<str>>,
    ) -> Box<Record> {
        Box::new(Record::begin(Arc::clone(self), request, client, key))
    }

    /// Logs a connection that was refused before a request was read, with the status it was given, if any.
    pub(crate) fn refused(
        &self,
        client: IpAddr,
        status: Option<StatusCode>,
        request_id: &str,
        because: &str,
        bytes: u64,
    ) {
        self.write(Line {
            request_id,
            operation: NO_OPERATION,
            status: status.map(|status| status.as_u16()),
            because: Some(because),
            bytes,
            client: Some(client),
            protocol: "HTTP/1.1",
            ended: if status.is_some() { "whole" } else { "broken" },
            ..Line::default()
        });
    }

    /// The operation of a path, and the escaped path if there is one.
    fn resolve(&self, path: &str, is_grpc: bool) -> (&'static str, Option<String>) {
        let operation = self.routes.operation_name(path, is_grpc);
        (operation.unwrap_or(NO_OPERATION), operation.map(|_| escape(path)))
    }

    fn write(&self, line: Line<'_>) {
        let line = Line {
            timestamp: mesh_chassis::timestamp(),
            level: "INFO",
            message: "request",
            client: line.client.map(|client| client.to_canonical()),
            target: "edge::access",
            ..line
        };
        // Serializing text and numbers to memory cannot fail.
        let Ok(mut text) = serde_json::to_vec(&line) else { return };
        text.push(b'\n');
        self.queue.push(&text);
    }
}

/// A path in printable ASCII: other bytes are percent-encoded, and a long path is cut with an ellipsis.
fn escape(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if text.len() >= MAX_PATH {
            text += "...";
            break;
        }
        match byte {
            b'"' | b'\\' | b'<' | b'>' | b'`' | b'?' | b'#' | ..=b' ' | 0x7f.. => {
                text += percent_encode_byte(byte);
            }
            _ => text.push(char::from(byte)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_escaped_and_cut() {
        assert_eq!(escape("/api/v2/withdrawal/a%2Fb"), "/api/v2/withdrawal/a%2Fb");
        assert_eq!(escape("/a\"\\<b>\u{7f}\r\né"), "/a%22%5C%3Cb%3E%7F%0D%0A%C3%A9");
        let long = escape(&"/x".repeat(5000));
        assert_eq!((long.len(), long.ends_with("/x...")), (MAX_PATH + 3, true));
    }
}
