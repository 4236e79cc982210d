//! What the mesh tells of itself, as a collector and a scraper see it: traces through all rooms, what a bad
//! collector does (nothing), and the list of metrics held against what is served.

mod bad_collectors;
mod metrics;
mod traces;

use mesh_testbed::{Collector, MeshSetup};

/// A trace as a client of tracing writes it.
pub(crate) const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
/// The client's own span.
pub(crate) const SPAN: &str = "b7ad6b7169203331";

/// `traceparent` of a trace that its client wants recorded, or not.
pub(crate) fn traceparent(trace: &str, is_sampled: bool) -> String {
    format!("00-{trace}-{SPAN}-0{}", u8::from(is_sampled))
}

/// Sends telemetry to a collector, soon; nothing is recorded unless a client wants it.
pub(crate) fn telling<'a>(setup: MeshSetup<'a>, collector: &Collector) -> MeshSetup<'a> {
    setup
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        // The testbed finds it wherever it is shown.
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20canary-of-the-collector")
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .env("OTEL_TRACES_SAMPLER", "parentbased_always_off")
}
