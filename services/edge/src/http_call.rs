//! The stages of a request over HTTP, in the order of contract section 2.3: sizes, path and method, rate,
//! parameters; then the service answers.

use std::{sync::Arc, time::Duration};

use http::{Method, StatusCode, header::EXPECT};
use mesh_chassis::accept;
use mesh_problem::{Code, MALFORMED, NOT_MAPPED, Problem};
use mesh_telemetry::TraceContext;
use proto_msgs::OperationInfo;
use warp::reply::Response;

use crate::{
    admission::head::{HttpError, check_size, is_preflight},
    ask::{
        answer::Answer, backend::NO_MEMORY, block_wait::BlockWait, cache::HttpQuestion,
        call_context::CallContext,
    },
    decode::{
        self, Decoded,
        body::{self, Body},
        percent::PathField,
        query::Parameters,
    },
    gateway::{GatewayState, RequestHead},
    grpc_kind::GrpcKind,
    respond::{answer, download::Download, handling::HandlingNote},
    route::{
        limits::{self, LIMITS},
        page::Page,
        routes::{ALL_METHODS, RouteMatch, WATCH},
    },
    unread_body,
    watch::http::{READ, WatchRequest, wants_events},
    web_socket::handshake::{self, Upgrade},
};

/// A request that is being answered.
pub(crate) struct HttpCall<'a> {
    pub(crate) state: &'a GatewayState,
    pub(crate) head: &'a RequestHead,
    pub(crate) body: &'a mut Body<warp::Error>,
    /// The trace context that is sent on.
    pub(crate) trace: Option<TraceContext>,
    /// How the request was understood, for the headers of its answer.
    pub(crate) note: &'a mut HandlingNote,
}

impl HttpCall<'_> {
    /// Answers the request and reads the rest of its body.
    pub(crate) async fn answer(mut self, matched: Option<&RouteMatch>) -> Result<Response, HttpError> {
        let answered = self.route(matched).await;
        self.drain_unread_body(answered).await
    }

    async fn route(&mut self, matched: Option<&RouteMatch>) -> Result<Response, HttpError> {
        let (state, head) = (self.state, self.head);
        check_size(head.target().len(), &head.headers, &state.config.limits)?;
        head.client.check_key()?;
        if let Some(kind) = GrpcKind::of_request(&head.method, &head.headers) {
            return Err(kind.refusal());
        }
        // RFC 9110, 9.3.7.
        if head.method == Method::OPTIONS && head.uri.path() == "*" {
            return Ok(answer::preflight(ALL_METHODS, &head.headers, &state.config));
        }
        let Some(matched) = matched else {
            // A browser shows the 404 of the request that follows only if its preflight succeeds.
            if is_preflight(&head.method, &head.headers) {
                return Ok(answer::preflight(ALL_METHODS, &head.headers, &state.config));
            }
            return Err(Problem::not_found(NOT_MAPPED, "no such path").into());
        };
        if head.method == Method::OPTIONS {
            return Ok(answer::preflight(matched.allow(), &head.headers, &state.config));
        }
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        match matched {
            RouteMatch::Page(page) if is_read => self.page(page).await,
            RouteMatch::Status if is_read => {
                self.check_rate()?;
                answer::check_if_match(&head.headers, None)?;
                Ok(state.status.answer().await)
            }
            RouteMatch::Watch if head.method == Method::GET && handshake::is_requested(&head.headers) => {
                self.open_web_socket().await
            }
            RouteMatch::Watch if is_read => self.watch(None).await,
            RouteMatch::Operation(operation, path)
                if operation.method == proto_msgs::Method::Get && is_read =>
            {
                match operation.is_watchable() && wants_events(&head.headers) {
                    true => self.watch(Some((operation, path))).await,
                    false => self.read(operation, path).await,
                }
            }
            RouteMatch::Operation(operation, path)
                if operation.method == proto_msgs::Method::Post && head.method == Method::POST =>
            {
                self.submit(operation, path).await
            }
            _ => {
                let problem =
                    Problem::new(Code::Unimplemented, NOT_MAPPED, "the method is not allowed on this path");
                let (status, allow) = (StatusCode::METHOD_NOT_ALLOWED, Some(matched.allow()));
                Err(HttpError { status, problem, allow })
            }
        }
    }

    /// Answers a request for a page.
    async fn page(&self, page: &Arc<Page>) -> Result<Response, HttpError> {
        let (state, head) = (self.state, self.head);
        if !page.is_vital {
            self.check_rate()?;
        }
        if let (Some(key), LIMITS) = (&head.client.key, page.name) {
            return limits::of_key(&state.config, &key.key, head.query(), &head.headers);
        }
        page.prepare().await;
        page.answer(head.query(), &head.headers)
    }

    /// Rejects a request for data of a client that needs a key (K2), or over its rate limit.
    fn check_access(&self) -> Result<(), HttpError> {
        self.head.client.check_access()?;
        self.check_rate()
    }

    /// Rejects a request over its rate limit; a body that is too large gets 413 instead (contract 2.3).
    fn check_rate(&self) -> Result<(), HttpError> {
        let Err(problem) = self.state.admission.check_rate(&self.head.client) else { return Ok(()) };
        body::check_announced(&self.head.headers, &self.state.config.limits)?;
        Err(problem.into())
    }

    /// Answers a read or a download.
    async fn read(
        &mut self,
        operation: &'static OperationInfo,
        path: &[PathField],
    ) -> Result<Response, HttpError> {
        self.check_access()?;
        let (state, head) = (self.state, self.head);
        // Before the permit: a slow body holds none.
        body::drain(self.body, &head.headers, &state.config.limits).await?;
        let permit = state.admission.request(&head.client, &operation.name)?;
        let question = self.question(operation, path)?;
        let context = self.context(state.config.limits.answer_time_of(operation));
        if operation.streaming {
            let download = Download {
                backend: &state.backend,
                question: &question.question,
                context: &context,
                headers: &head.headers,
                is_head: head.method == Method::HEAD,
                is_http2: head.client.connection.is_http2(),
                permit: Some(state.admission.download(&head.client)?),
                opening: Some(permit),
            };
            return download.answer().await;
        }
        let mut wait = BlockWait::of_request(&question.question, &head.headers);
        let answered = state.backend.read_target(head.target(), &question, context, wait.as_mut()).await;
        self.note.waited = wait.and_then(|wait| wait.applied());
        let answer = answered?;
        answer::check_if_match(&head.headers, answer.tag_for(&head.headers).as_deref())?;
        self.respond(&answer)
    }

    fn respond(&self, answer: &Answer) -> Result<Response, HttpError> {
        let Self { state, head, .. } = self;
        let response = answer::respond(answer, &head.client, &head.headers);
        Ok(response.inspect_err(|_| _ = state.metrics.shed(NO_MEMORY).inc())?)
    }

    /// The question of a read, unless the fast path decoded it before.
    fn question(
        &mut self,
        operation: &'static OperationInfo,
        path: &[PathField],
    ) -> Result<HttpQuestion, Problem> {
        let head = self.head;
        if let Some(question) = &head.question {
            self.note.ignored.clone_from(&question.ignored);
            return Ok(question.clone());
        }
        let (gzip, handling) = (accept::accepts_gzip(&head.headers), self.note.read(&head.headers));
        let Decoded { question, ignored } =
            decode::from_http(operation, path, head.query(), &[], gzip, handling);
        let ignored = ignored.header();
        self.note.ignored.clone_from(&ignored);
        Ok(HttpQuestion { question: Arc::new(question?), ignored })
    }

    /// Answers a watch: of one read, or of those in the query of `GET /watch`.
    async fn watch(
        &mut self,
        read: Option<(&'static OperationInfo, &[PathField])>,
    ) -> Result<Response, HttpError> {
        self.check_access()?;
        let (state, head) = (self.state, self.head);
        body::drain(self.body, &head.headers, &state.config.limits).await?;
        let name = read.map_or(WATCH, |(read, _)| &read.name);
        let _permit = state.admission.request(&head.client, name)?;
        let handling = self.note.read(&head.headers);
        let request = match read {
            Some((read, path)) => WatchRequest::one(read, path, head.query(), handling),
            None => WatchRequest::several(&state.routes, head.query(), handling),
        };
        self.note.ignored = request.ignored.header();
        for _ in 1..request.reads() {
            state.admission.check_rate(&state.admission.count_again(&head.client)?)?;
        }
        let context = self.context(state.config.limits.answer_time);
        let response = request.answer(&state.watches, &head.client, &head.headers, &context).await?;
        // Events have no tag.
        answer::check_if_match(&head.headers, None)?;
        Ok(response)
    }

    /// Answers the handshake of a WebSocket, whose frames begin watches.
    async fn open_web_socket(&mut self) -> Result<Response, HttpError> {
        self.check_access()?;
        let (state, head) = (self.state, self.head);
        if head.headers.contains_key(EXPECT) {
            // Its body would come after the 101 and be taken for frames (RFC 9110, 7.8).
            return Err(Problem::invalid(MALFORMED, "a handshake has no `Expect`").into());
        }
        body::drain(self.body, &head.headers, &state.config.limits).await?;
        let handling = self.note.read(&head.headers);
        let parameters = Parameters::parse(head.query())?;
        let (reads, ignored) = parameters.only(READ, handling)?;
        self.note.ignored = ignored.header();
        if !reads.is_empty() {
            let reason = format!("{READ} is not used over a WebSocket: each read has its own frame");
            return Err(Problem::invalid(MALFORMED, reason).into());
        }
        let upgrade = Upgrade::new(&head.client, handling, &state.watches);
        let response = upgrade.answer(&head.headers, &state.config, parameters.pretty()?)?;
        answer::check_if_match(&head.headers, None)?;
        Ok(response)
    }

    /// Answers a submission.
    async fn submit(
        &mut self,
        operation: &'static OperationInfo,
        path: &[PathField],
    ) -> Result<Response, HttpError> {
        self.check_access()?;
        let (state, head) = (self.state, self.head);
        // Before the body: permits bound the memory for bodies that are too short to be counted.
        let _permit = state.admission.request(&head.client, &operation.name)?;
        let hold = |bytes| state.backend.hold_body(head.client.id.number(), bytes);
        let (body, _held) = body::read_whole(self.body, &head.headers, &state.config.limits, hold).await?;
        state.metrics.received_body(&operation.name, body.len());
        let (gzip, handling) = (accept::accepts_gzip(&head.headers), self.note.read(&head.headers));
        let context = self.context(state.config.limits.answer_time_of(operation));
        let decoded = decode::from_http(operation, path, head.query(), &body, gzip, handling);
        self.note.ignored = decoded.ignored.header();
        let answer = state.backend.submit(&decoded.question?, &context).await?;
        self.respond(&answer)
    }

    /// The context of the one call that answers this request.
    fn context(&mut self, within: Duration) -> CallContext {
        CallContext::new(self.head.id.as_str().to_owned(), &self.head.client, self.trace.take(), within)
    }

    /// Reads the rest of an unread body, which must be well framed: the next request begins at its end. A
    /// body that is too large does not change the answer.
    async fn drain_unread_body(
        &mut self,
        answered: Result<Response, HttpError>,
    ) -> Result<Response, HttpError> {
        let is_final = |error: &HttpError| {
            matches!(error.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT)
        };
        if answered.as_ref().is_err_and(is_final) {
            return answered;
        }
        let head = self.head;
        let is_announced = body::is_sending(&head.headers) || head.headers.contains_key(EXPECT);
        if !is_announced && head.client.connection.is_http2() {
            // Over HTTP/2 a body needs no header that announces it.
            unread_body::drain(self.body).await;
        }
        match body::drain(self.body, &head.headers, &self.state.config.limits).await {
            Err(error) if error.status != StatusCode::PAYLOAD_TOO_LARGE => Err(error),
            _ => answered,
        }
    }
}
