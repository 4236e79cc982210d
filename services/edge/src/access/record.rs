//! What is noted of one request, from its head to the last byte of its answer; the line is written when this is dropped.

use std::{net::IpAddr, sync::Arc, time::Instant};

use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version, header::CONTENT_LENGTH};
use hyper::body::{Body, Buf, Frame};
use mesh_telemetry::TraceContext;

use super::{AccessLog, Line, Numbers, StreamFailure};
use crate::{
    answer::{RequestId, X_REQUEST_ID},
    connection::InFlight,
    grpc, trace,
};

const GRPC_STATUS: &str = "grpc-status";

/// One request.
pub(crate) struct Record {
    log: Arc<AccessLog>,
    started: Instant,
    method: Method,
    uri: Uri,
    protocol: &'static str,
    client: IpAddr,
    trace: Option<TraceContext>,
    /// The client's, or a new one, until the answer says another.
    id: RequestId,
    status: Option<StatusCode>,
    grpc_status: Option<u8>,
    numbers: Vec<u32>,
    because: Option<String>,
    failure: Option<StreamFailure>,
    /// Bytes that the body has, where that is known, and those that were handed over.
    length: Option<u64>,
    bytes: u64,
    ended: Ended,
}

/// How an answer ended, in the words of the metric of downloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// All of it was handed over to be sent.
    Whole,
    /// The edge broke it off.
    Broken,
    /// Nobody took the rest of it.
    Left,
}

impl Record {
    pub(super) fn begin<B>(log: Arc<AccessLog>, request: &Request<B>, client: IpAddr) -> Self {
        let headers = request.headers();
        let protocol = match request.version() {
            Version::HTTP_2 if grpc::is_meant(request.method(), headers) => "gRPC",
            Version::HTTP_2 => "HTTP/2",
            Version::HTTP_10 => "HTTP/1.0",
            _ => "HTTP/1.1",
        };
        Self {
            log,
            started: Instant::now(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            protocol,
            client,
            trace: trace::client(headers),
            id: RequestId::of(headers),
            status: None,
            grpc_status: None,
            numbers: Vec::new(),
            because: None,
            failure: None,
            length: None,
            bytes: 0,
            ended: Ended::Left,
        }
    }

    /// Notes the head of the answer.
    pub(crate) fn answered<B: Body>(&mut self, response: &Response<B>, request: &InFlight) {
        let (headers, extensions) = (response.headers(), response.extensions());
        self.status = Some(response.status());
        self.grpc_status = grpc_status(headers);
        if let Some(id) = headers.get(X_REQUEST_ID) {
            self.id = RequestId::sent(id.clone());
        }
        if let Some(recorded) = extensions.get::<TraceContext>() {
            self.trace = Some(recorded.clone());
        }
        if let Some(Numbers(numbers)) = extensions.get() {
            self.numbers.clone_from(numbers);
        }
        self.failure = extensions.get().cloned();
        if request.is_broken() {
            self.because = request.refusal();
        }
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let has_body = self.method != Method::HEAD
            && !matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        self.length = match has_body {
            true => length.or_else(|| response.body().size_hint().exact()),
            false => Some(0),
        };
        self.look(response.body().is_end_stream());
    }

    /// Notes why it was refused.
    pub(crate) fn refused(&mut self, because: &str) {
        self.because = Some(because.to_owned());
    }

    /// Notes what was polled of the answer's body, and whether that was its end.
    pub(crate) fn polled<D: Buf, E>(&mut self, frame: &Option<Result<Frame<D>, E>>, is_end: bool) {
        match frame {
            None => return self.look(true),
            Some(Err(_)) => self.ended = Ended::Broken,
            Some(Ok(frame)) => {
                self.bytes += frame.data_ref().map_or(0, |data| data.remaining() as u64);
                if let Some(code) = frame.trailers_ref().and_then(grpc_status) {
                    self.grpc_status = Some(code);
                    self.ended = if code == 0 { Ended::Whole } else { Ended::Broken };
                    return;
                }
            }
        }
        self.look(is_end);
    }

    /// Sees whether the answer has come to its end.
    fn look(&mut self, is_end: bool) {
        if self.ended == Ended::Left && (is_end || self.length.is_some_and(|length| self.bytes >= length)) {
            self.ended = Ended::Whole;
        }
    }

    fn is_error(&self) -> bool {
        self.ended != Ended::Whole
            || self.status.is_none_or(|status| status.as_u16() >= 400)
            || self.grpc_status.is_some_and(|code| code != 0)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(number) = self.failure.as_ref().and_then(StreamFailure::number) {
            // The chunk form says so in its last line, and ends in order.
            self.ended = Ended::Broken;
            self.numbers.push(number);
        }
        if !self.log.is_all && !self.is_error() {
            return;
        }
        let (operation, path) = self.log.place(self.uri.path(), self.protocol == "gRPC");
        self.log.write(Line {
            request_id: self.id.as_str(),
            trace_id: self.trace.as_ref().map(|trace| trace.trace_id().to_string()),
            method: Some(known(&self.method)),
            path,
            operation,
            status: self.status.map(|status| status.as_u16()),
            grpc_status: self.grpc_status,
            errors: &self.numbers,
            because: self.because.as_deref(),
            bytes: self.bytes,
            duration_ms: self.started.elapsed().as_micros() as f64 / 1000.0,
            client: Some(self.client),
            protocol: self.protocol,
            ended: match self.ended {
                Ended::Whole => "whole",
                Ended::Broken => "broken",
                Ended::Left => "left",
            },
            ..Line::default()
        });
    }
}

fn grpc_status(headers: &HeaderMap) -> Option<u8> {
    headers.get(GRPC_STATUS)?.to_str().ok()?.parse().ok()
}

/// Methods that nobody knows are one.
pub(crate) fn known(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}
