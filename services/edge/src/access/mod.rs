//! The access log: a JSON line about each request, or about those that were refused or broke off, beside the service's other
//! lines. It tells how a request was shaped and what became of it; of what the client wrote it has the path of a known route
//! and the request's id: no query, no header, no body.

mod record;
mod told;

use std::{collections::HashMap, fmt::Write, net::IpAddr, str::FromStr, sync::Arc};

use http::{Request, StatusCode};
use mesh_chassis::LogQueue;
use proto_msgs::Contract;
use serde::Serialize;

pub(crate) use record::{Record, known};
pub(crate) use told::{Numbers, StreamFailure};

use crate::{
    grpc,
    routes::{Matched, Routes},
};

/// Longest path that is written, bytes.
const PATH_AT_MOST: usize = 256;

/// What a request is counted as that no route matches.
const NO_OPERATION: &str = "none";

/// Which requests are told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Off,
    /// Those with a status of 400 or more, a gRPC status other than OK, or an answer that did not come to its end.
    Errors,
    All,
}

impl FromStr for Wanted {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "errors" => Ok(Self::Errors),
            "all" => Ok(Self::All),
            _ => Err("it is off, errors or all"),
        }
    }
}

/// The log, where it is on.
pub(crate) struct AccessLog {
    is_all: bool,
    queue: LogQueue,
    routes: Routes,
    /// Operations by their gRPC paths.
    methods: HashMap<String, &'static str>,
}

/// A line, as it is written; what is not known is left out.
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
    /// Why there was no request to be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'a str>,
    bytes: u64,
    duration_ms: f64,
    client: Option<IpAddr>,
    protocol: &'static str,
    ended: &'static str,
    target: &'static str,
}

impl AccessLog {
    /// The log of these routes, where it is wanted.
    pub(crate) fn new(wanted: Wanted, queue: LogQueue, routes: Routes) -> Option<Arc<Self>> {
        let operations = Contract::get().operations().iter();
        let methods = operations.map(|operation| (operation.rpc(), operation.name.as_str())).collect();
        let is_all = wanted == Wanted::All;
        (wanted != Wanted::Off).then(|| Arc::new(Self { is_all, queue, routes, methods }))
    }

    /// Begins to note what becomes of a request.
    pub(crate) fn begin<B>(self: &Arc<Self>, request: &Request<B>, client: IpAddr) -> Box<Record> {
        Box::new(Record::begin(Arc::clone(self), request, client))
    }

    /// Tells of a connection that was refused before there was a request, by the status that it was told.
    pub(crate) fn refused(
        &self,
        client: IpAddr,
        status: StatusCode,
        request_id: &str,
        because: &str,
        bytes: u64,
    ) {
        self.write(Line {
            request_id,
            operation: NO_OPERATION,
            status: Some(status.as_u16()),
            because: Some(because),
            bytes,
            client: Some(client),
            protocol: "HTTP/1.1",
            ended: "whole",
            ..Line::default()
        });
    }

    /// The operation of a path, and the path as far as it is one that is known.
    fn place(&self, path: &str, is_grpc: bool) -> (&'static str, Option<String>) {
        let operation = match is_grpc {
            true => self.methods.get(path).copied().or_else(|| grpc::standard_service(path)),
            false => self.routes.find(path).as_ref().map(Matched::name),
        };
        (operation.unwrap_or(NO_OPERATION), operation.map(|_| escaped(path)))
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
        // Text and numbers: there is nothing that could not be written.
        let Ok(mut text) = serde_json::to_vec(&line) else { return };
        text.push(b'\n');
        self.queue.push(&text);
    }
}

/// A path whose bytes are all plain: others are percent-encoded, and what is too long ends with an ellipsis.
fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if text.len() >= PATH_AT_MOST {
            text += "...";
            break;
        }
        match byte {
            b'"' | b'\\' | b'<' | b'>' | b'`' | b'?' | b'#' | ..=b' ' | 0x7f.. => {
                let _ = write!(text, "%{byte:02X}");
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
    fn a_path_is_written_in_plain_bytes_and_not_at_any_length() {
        assert_eq!(escaped("/api/v2/withdrawal/a%2Fb"), "/api/v2/withdrawal/a%2Fb");
        assert_eq!(escaped("/a\"\\<b>\u{7f}\r\né"), "/a%22%5C%3Cb%3E%7F%0D%0A%C3%A9");
        let long = escaped(&"/x".repeat(5000));
        assert_eq!((long.len(), long.ends_with("/x...")), (PATH_AT_MOST + 3, true));
    }

    #[test]
    fn it_is_off_or_tells_of_errors_or_of_all() {
        let read = |text: &str| text.parse::<Wanted>();
        assert_eq!(
            (read("off"), read("errors"), read("all")),
            (Ok(Wanted::Off), Ok(Wanted::Errors), Ok(Wanted::All))
        );
        assert!(read("").is_err() && read("ALL").is_err() && read("true").is_err());
    }
}
