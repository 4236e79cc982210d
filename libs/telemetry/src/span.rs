//! Spans of a trace, with names and attributes of the OpenTelemetry semantic conventions, without values of
//! requests.
//!
//! The first span of a process is created if the context's trace is recorded, further ones only inside a recorded
//! span. `tracing`'s `Instrument` makes a span current for a future.

use std::sync::atomic::{AtomicBool, Ordering};

use opentelemetry::{
    KeyValue, Value,
    trace::{Status, TraceContextExt},
};
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::TraceContext;

/// The `tracing` target of all spans; logs do not use it.
pub const TARGET: &str = "mesh::span";

static IS_ENABLED: AtomicBool = AtomicBool::new(false);

/// Enables spans in this process; called when a recorder is configured.
pub fn enable() {
    IS_ENABLED.store(true, Ordering::Relaxed);
}

/// Whether spans are recorded in this process.
pub fn is_enabled() -> bool {
    IS_ENABLED.load(Ordering::Relaxed)
}

/// The context of the current span, to be forwarded; `None` outside of a span.
pub fn current_context() -> Option<TraceContext> {
    current().trace_context()
}

/// The current span, if it is recorded.
pub fn current() -> Span {
    if !is_enabled() {
        return Span::none();
    }
    let span = Span::current();
    match span.metadata() {
        Some(metadata) if metadata.target() == TARGET => span,
        _ => Span::none(),
    }
}

/// Makes a span the first of its trace in this process.
fn with_parent(span: Span, parent: Option<&TraceContext>) -> Span {
    if let Some(parent) = parent {
        // It fails for a span that is not recorded.
        let _ = span.set_parent(parent.as_parent());
    }
    span
}

/// A recorded HTTP request. `route`: the path with its variables' names; `scheme`: `http` or `https`. A path that no
/// route matches is the client's text, and is not recorded.
pub fn http_server(
    parent: Option<&TraceContext>,
    method: &str,
    route: Option<&str>,
    (scheme, path): (&str, &str),
    request_id: &str,
) -> Span {
    if !is_enabled() {
        return Span::none();
    }
    let name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"));
    let span = info_span!(
        target: TARGET, parent: None, "http", otel.name = name, otel.kind = "server", http.request.method = method,
        http.route = route, url.path = route.map(|_| path), url.scheme = scheme, mesh.request_id = request_id
    );
    with_parent(span, parent)
}

/// A recorded gRPC call. `method`: `<package>.<Service>/<Method>`.
pub fn grpc_server(parent: Option<&TraceContext>, method: &str, request_id: &str) -> Span {
    if !is_enabled() {
        return Span::none();
    }
    let span = info_span!(
        target: TARGET, parent: None, "grpc", otel.name = method, otel.kind = "server", rpc.system.name = "grpc",
        rpc.method = method, mesh.request_id = request_id
    );
    with_parent(span, parent)
}

/// A request received over the bus; a span only if its trace is recorded.
pub fn answer(parent: Option<&TraceContext>, workload: &str, operation: &str, request_id: &str) -> Span {
    let Some(parent) = parent.filter(|parent| is_enabled() && parent.is_sampled()) else {
        return Span::none();
    };
    let name = format!("{workload}/{operation}");
    let span = info_span!(
        target: TARGET, parent: None, "answer", otel.name = name, otel.kind = "server", rpc.system.name = "mesh",
        rpc.method = operation, messaging.system = "nats", mesh.request_id = request_id
    );
    with_parent(span, Some(parent))
}

/// A request over the bus with all its attempts.
pub fn ask(workload: &str, operation: &str) -> Span {
    if current().is_none() {
        return Span::none();
    }
    let name = format!("{workload}/{operation}");
    info_span!(
        target: TARGET, "ask", otel.name = name, otel.kind = "client", rpc.system.name = "mesh",
        rpc.method = operation, messaging.system = "nats"
    )
}

/// A pulled stream, from its opening to its end.
pub fn stream(workload: &str, operation: &str) -> Span {
    if current().is_none() {
        return Span::none();
    }
    let name = format!("pull {workload}/{operation}");
    info_span!(
        target: TARGET, "stream", otel.name = name, otel.kind = "client", rpc.system.name = "mesh",
        rpc.method = operation, messaging.system = "nats"
    )
}

/// A database statement. `sql`: its fixed text, whose first comment line and first word become attributes of the
/// span.
pub fn statement(sql: &str, pool: &'static str) -> Span {
    if current().is_none() {
        return Span::none();
    }
    let operation = operation_of(sql);
    let summary = sql.lines().next().and_then(|line| line.strip_prefix("-- "));
    info_span!(
        target: TARGET, "statement", otel.name = operation, otel.kind = "client", db.system.name = "postgresql",
        db.operation.name = operation, db.query.summary = summary, db.client.connection.pool.name = pool
    )
}

/// The first word of a statement; `WITH` counts as `SELECT`.
fn operation_of(sql: &str) -> &str {
    let code = sql.lines().find(|line| !line.trim_start().starts_with("--") && !line.trim().is_empty());
    match code.and_then(|line| line.split_whitespace().next()) {
        None | Some("WITH") => "SELECT",
        Some(word) => word,
    }
}

/// An operation on an object of the object store.
pub fn object(does: &'static str, object: &impl std::fmt::Display) -> Span {
    if current().is_none() {
        return Span::none();
    }
    info_span!(
        target: TARGET, "object", otel.name = format!("{does} object"), otel.kind = "client",
        mesh.object.operation = does, mesh.object.name = %object
    )
}

/// A call of a JSON-RPC method over HTTP.
pub fn http_client(host: &str, port: Option<u16>, rpc_method: &str) -> Span {
    if current().is_none() {
        return Span::none();
    }
    info_span!(
        target: TARGET, "http", otel.name = format!("POST {rpc_method}"), otel.kind = "client",
        http.request.method = "POST", server.address = host, server.port = port, rpc.system.name = "jsonrpc",
        rpc.method = rpc_method
    )
}

/// A block from the consensus node to the store, the first span of its trace.
pub fn block(height: u64) -> Span {
    if !is_enabled() {
        return Span::none();
    }
    info_span!(target: TARGET, parent: None, "block", otel.name = "block", mesh.block.height = height)
}

/// A step of storing a block.
pub fn block_step(block: &Span, step: &'static str) -> Span {
    if block.is_none() {
        return Span::none();
    }
    info_span!(target: TARGET, parent: block, "step", otel.name = step)
}

/// Operations on a span; no effect if it is not recorded.
pub trait SpanExt {
    /// Records an attribute.
    fn record_attribute(&self, name: &'static str, value: impl Into<Value>);

    /// Records an event at the current time.
    fn record_event<const N: usize>(&self, what: &'static str, attributes: [(&'static str, Value); N]);

    /// Records a failure; `kind` is one of a few fixed words.
    fn record_failure(&self, kind: &str);

    /// Its context, to be forwarded.
    fn trace_context(&self) -> Option<TraceContext>;
}

impl SpanExt for Span {
    fn record_attribute(&self, name: &'static str, value: impl Into<Value>) {
        if !self.is_none() {
            self.set_attribute(name, value);
        }
    }

    fn record_event<const N: usize>(&self, what: &'static str, attributes: [(&'static str, Value); N]) {
        if !self.is_none() {
            let attributes = attributes.map(|(name, value)| KeyValue::new(name, value));
            self.add_event(what, attributes.into());
        }
    }

    fn record_failure(&self, kind: &str) {
        if !self.is_none() {
            self.set_attribute("error.type", kind.to_owned());
            self.set_status(Status::error(""));
        }
    }

    fn trace_context(&self) -> Option<TraceContext> {
        if self.is_none() {
            return None;
        }
        TraceContext::of(self.context().span().span_context())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_named_by_its_first_word() {
        assert_eq!(operation_of("-- One thing.\n-- $1 id.\nSELECT a FROM b"), "SELECT");
        assert_eq!(operation_of("WITH x AS (SELECT 1) SELECT * FROM x"), "SELECT");
        assert_eq!(operation_of("UPDATE a SET b = 'secret'"), "UPDATE");
        assert_eq!(operation_of(""), "SELECT");
    }

    #[test]
    fn no_span_is_made_without_a_recorder() {
        assert!(http_server(None, "GET", None, ("http", "/"), "id").is_none());
        assert!(ask("query", "GetThing").is_none() && current_context().is_none());
        let none = Span::none();
        none.record_failure("timeout");
        none.record_event("opened", [("bytes", Value::from(1))]);
        assert_eq!(none.trace_context(), None);
    }
}
