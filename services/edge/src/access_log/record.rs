//! The record of one request, from its head to the last byte of its answer; its line is written when it is
//! dropped.

use std::{net::IpAddr, sync::Arc, time::Instant};

use http::{Method, Request, Response, StatusCode, Uri, Version, header::CONTENT_LENGTH};
use hyper::body::{Body, Buf, Frame};
use mesh_telemetry::TraceContext;

use crate::{
    access_log::{AccessLog, Line},
    connection::InFlightRequest,
    grpc::{self, protocol::status_code},
    grpc_kind::is_grpc,
    respond::notes::{ErrorNumbers, StreamFailure},
    trace::{self, RequestId, X_REQUEST_ID},
    watch::event_stream,
};

/// The record of one request.
pub(crate) struct Record {
    log: Arc<AccessLog>,
    started: Instant,
    method: Method,
    uri: Uri,
    protocol: &'static str,
    client: IpAddr,
    /// Name of the client's key.
    key: Option<Arc<str>>,
    trace: Option<TraceContext>,
    /// The client's, or a new one, until the answer has one.
    id: RequestId,
    status: Option<StatusCode>,
    grpc_status: Option<u8>,
    numbers: Vec<u32>,
    because: Option<String>,
    failure: Option<StreamFailure>,
    /// Whether it is a watch, which the client leaves as a rule.
    is_watch: bool,
    /// Length of the body, where it is known.
    length: Option<u64>,
    /// Bytes that were passed to hyper.
    bytes: u64,
    ended: Ended,
}

/// How an answer ended, in the terms of the metric of downloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was sent completely.
    Whole,
    /// The edge broke it off.
    Broken,
    /// The client left before its end.
    Left,
}

impl Record {
    pub(super) fn begin<B>(
        log: Arc<AccessLog>,
        request: &Request<B>,
        client: IpAddr,
        key: Option<Arc<str>>,
    ) -> Self {
        let headers = request.headers();
        let protocol = match request.version() {
            Version::HTTP_2 if is_grpc(request.method(), headers) => "gRPC",
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
            key,
            trace: trace::client_context(headers),
            id: RequestId::of(headers),
            status: None,
            grpc_status: None,
            numbers: Vec::new(),
            because: None,
            failure: None,
            is_watch: false,
            length: None,
            bytes: 0,
            ended: Ended::Left,
        }
    }

    /// Records the head of the answer.
    pub(crate) fn set_head<B: Body>(&mut self, response: &Response<B>, request: &InFlightRequest) {
        let (headers, extensions) = (response.headers(), response.extensions());
        self.status = Some(response.status());
        let is_switch = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        self.is_watch = is_switch || self.uri.path() == grpc::watch::PATH || event_stream::is_in(headers);
        self.grpc_status = status_code(headers);
        if let Some(id) = headers.get(X_REQUEST_ID) {
            self.id = RequestId::of_answer(id.clone());
        }
        if let Some(recorded) = extensions.get::<TraceContext>() {
            self.trace = Some(recorded.clone());
        }
        if let Some(ErrorNumbers(numbers)) = extensions.get() {
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
        // Another protocol begins after the head.
        self.check_end(response.body().is_end_stream() && !is_switch);
    }

    /// Records the end of a connection that speaks another protocol, and the bytes that were sent in it.
    pub(crate) fn set_end(&mut self, bytes: u64, ended: Ended) {
        (self.bytes, self.ended) = (bytes, ended);
    }

    /// Records why the request was refused.
    pub(crate) fn set_reason(&mut self, because: &str) {
        self.because = Some(because.to_owned());
    }

    /// Records a frame of the answer's body, and whether it was the last one.
    pub(crate) fn add_frame<D: Buf, E>(&mut self, frame: &Option<Result<Frame<D>, E>>, is_end: bool) {
        match frame {
            None => return self.check_end(true),
            Some(Err(_)) => self.ended = Ended::Broken,
            Some(Ok(frame)) => {
                self.bytes += frame.data_ref().map_or(0, |data| data.remaining() as u64);
                if let Some(code) = frame.trailers_ref().and_then(status_code) {
                    self.grpc_status = Some(code);
                    self.ended = if code == 0 { Ended::Whole } else { Ended::Broken };
                    return;
                }
            }
        }
        self.check_end(is_end);
    }

    /// Records the end of the answer once it is complete.
    fn check_end(&mut self, is_end: bool) {
        if self.ended == Ended::Left && (is_end || self.length.is_some_and(|length| self.bytes >= length)) {
            self.ended = Ended::Whole;
        }
    }

    fn is_error(&self) -> bool {
        self.ended == Ended::Broken
            || (self.ended == Ended::Left && !self.is_watch)
            || self.status.is_none_or(|status| status.as_u16() >= 400)
            || self.grpc_status.is_some_and(|code| code != 0)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(number) = self.failure.as_ref().and_then(StreamFailure::number) {
            // The chunk form ends with an error line, and its transfer in order.
            self.ended = Ended::Broken;
            self.numbers.push(number);
        }
        if !self.log.is_all && !self.is_error() {
            return;
        }
        let (operation, path) = self.log.resolve(self.uri.path(), self.protocol == "gRPC");
        self.log.write(Line {
            request_id: self.id.as_str(),
            trace_id: self.trace.as_ref().map(|trace| trace.trace_id().to_string()),
            method: Some(known_method(&self.method)),
            path,
            operation,
            status: self.status.map(|status| status.as_u16()),
            grpc_status: self.grpc_status,
            errors: &self.numbers,
            because: self.because.as_deref(),
            bytes: self.bytes,
            duration_ms: self.started.elapsed().as_micros() as f64 / 1000.0,
            client: Some(self.client),
            key: self.key.as_deref(),
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

/// The method, or `_OTHER` for an unknown one.
fn known_method(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}
