//! Telemetry as a collector and a scraper receive it: traces through all services, no effect of a bad
//! collector, and the documented list of metrics compared with the served ones.

mod bad_collectors;
mod metrics;
mod traces;

use mesh_testbed::{Collector, MeshSetup};

pub(crate) const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
pub(crate) const SPAN: &str = "b7ad6b7169203331";

/// `traceparent` of a trace, with or without the sampled flag.
pub(crate) fn traceparent(trace: &str, is_sampled: bool) -> String {
    format!("00-{trace}-{SPAN}-0{}", u8::from(is_sampled))
}

/// Configures a short export interval to a collector and a sample rate of 0, so that only traces sampled by
/// clients are recorded.
pub(crate) fn with_collector<'a>(setup: MeshSetup<'a>, collector: &Collector) -> MeshSetup<'a> {
    setup
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        // A credential: the testbed fails a test whose output shows it.
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20canary-of-the-collector")
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .env("OTEL_TRACES_SAMPLER", "parentbased_always_off")
}
