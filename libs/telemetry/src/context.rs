//! W3C trace context: parsed strictly, forwarded unchanged.

use std::fmt;

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState},
};

/// Longest forwarded `tracestate`, bytes: the minimum that the standard requires.
const STATE_AT_MOST: usize = 512;

/// The trace that a request belongs to: its ids, whether it is recorded, and the state of other vendors.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceContext(SpanContext);

impl TraceContext {
    /// Reads the values of `traceparent` and `tracestate`; `None` when `traceparent` is malformed. A malformed or
    /// long `tracestate` is dropped.
    pub fn read(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let mut hex = |length| parts.next().filter(|text| is_hex(text, length));
        let (version, trace, span, flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
        if version == "ff" || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
        let state = tracestate.filter(|text| text.len() <= STATE_AT_MOST);
        let state = state.and_then(|text| text.parse::<TraceState>().ok()).unwrap_or_default();
        let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
        Some(Self(SpanContext::new(trace, span, flags, true, state))).filter(|read| read.0.is_valid())
    }

    /// The context of a span; `None` when it is not recorded.
    pub(crate) fn of(context: &SpanContext) -> Option<Self> {
        context.is_valid().then(|| Self(context.clone()))
    }

    /// The context as the parent of a span.
    pub(crate) fn as_parent(&self) -> Context {
        Context::new().with_remote_span_context(self.0.clone())
    }

    /// Whether the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        self.0.is_sampled()
    }

    /// The same context with another recording flag.
    #[must_use]
    pub fn sampled(self, is_sampled: bool) -> Self {
        let Self(context) = self;
        let flags = context.trace_flags().with_sampled(is_sampled);
        let state = context.trace_state().clone();
        Self(SpanContext::new(context.trace_id(), context.span_id(), flags, true, state))
    }

    /// The trace's id, 32 hex digits.
    pub fn trace_id(&self) -> impl fmt::Display {
        self.0.trace_id()
    }

    /// The value of `traceparent`.
    pub fn traceparent(&self) -> String {
        let Self(context) = self;
        format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), context.trace_flags().to_u8())
    }

    /// The value of `tracestate`, unless it is empty.
    pub fn tracestate(&self) -> Option<String> {
        Some(self.0.trace_state().header()).filter(|state| !state.is_empty())
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|letter| matches!(letter, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    fn read(text: &str) -> Option<String> {
        TraceContext::read(text, None).map(|context| context.traceparent())
    }

    #[test]
    fn what_is_well_formed_is_passed_on() {
        for flags in ["00", "01"] {
            let text = format!("00-{TRACE}-{SPAN}-{flags}");
            assert_eq!(read(&text), Some(text));
        }
        assert_eq!(
            read(&format!("00-{TRACE}-{SPAN}-ff")),
            Some(format!("00-{TRACE}-{SPAN}-01")),
            "unknown flags"
        );
        let newer = format!("cc-{TRACE}-{SPAN}-01-what-the-future-brings");
        assert_eq!(read(&newer), Some(format!("00-{TRACE}-{SPAN}-01")));
        let context = TraceContext::read(&format!("00-{TRACE}-{SPAN}-01"), None).unwrap();
        assert_eq!(context.trace_id().to_string(), TRACE);
        assert!(!context.sampled(false).is_sampled());
    }

    #[test]
    fn what_is_malformed_is_nothing() {
        let zeros = |length| "0".repeat(length);
        for bad in [
            String::new(),
            "nonsense".to_owned(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", zeros(32)),
            format!("00-{TRACE}-{}-01", zeros(16)),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{}g-{SPAN}-01", &TRACE[1..]),
            format!(" 00-{TRACE}-{SPAN}-01"),
        ] {
            assert_eq!(read(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_state_is_passed_on_when_it_is_one() {
        let state = |text: &str| {
            TraceContext::read(&format!("00-{TRACE}-{SPAN}-01"), Some(text))
                .and_then(|read| read.tracestate())
        };
        assert_eq!(
            state("rojo=00f067aa0ba902b7,congo=t61").as_deref(),
            Some("rojo=00f067aa0ba902b7,congo=t61")
        );
        for nothing in ["", "no value", "UPPER=1", &format!("a={}", "b".repeat(STATE_AT_MOST))] {
            assert_eq!(state(nothing), None, "{nothing}");
        }
    }
}
