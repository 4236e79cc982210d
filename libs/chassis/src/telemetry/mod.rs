//! Recorded spans on their way to a collector, when one is configured, as OTLP over HTTP. Exporting runs on
//! threads of its own: the service queues a span without waiting. Metrics are scraped from the admin port
//! instead.
//!
//! The standard variables decide (`OTEL_EXPORTER_OTLP_ENDPOINT` and its kin). Without an endpoint there is
//! none of this: no thread, no span.

mod collector;
mod spans;

use std::{io, time::Duration};

use mesh_telemetry::{Registry, list, span};
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracer, SdkTracerProvider},
};
use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::runtime::{Builder, Runtime};

use self::collector::Collector;
use crate::Env;

/// Longest time for the last spans at the end.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// For one request to the collector, unless `OTEL_EXPORTER_OTLP_TIMEOUT` is set.
const EXPORT_WITHIN_MS: u64 = 10_000;

/// What became of spans.
#[derive(Debug, Clone)]
struct Counts {
    exported: Counter,
    failed: Counter,
    dropped: Counter,
}

type ByOutcome = Family<[(&'static str, &'static str); 1], Counter>;

impl Counts {
    fn of(family: &ByOutcome) -> Self {
        let of = |outcome| family.get_or_create_owned(&[("outcome", outcome)]);
        Self { exported: of("exported"), failed: of("failed"), dropped: of("dropped") }
    }
}

/// Where spans go.
pub(crate) struct Telemetry {
    spans: ByOutcome,
    export: Option<Export>,
}

/// What is there when a collector is configured.
struct Export {
    runtime: Runtime,
    provider: SdkTracerProvider,
}

impl Telemetry {
    /// Starts the threads, when there is a collector. What cannot work is a mistake of the configuration.
    pub(crate) fn start(env: &mut Env, workload: &'static str, version: &str) -> Self {
        let spans = ByOutcome::default();
        let counts = Counts::of(&spans);
        let export = traces_endpoint(env).and_then(|endpoint| {
            let resource = resource(env, workload, version);
            Export::start(env, &endpoint, resource, &counts)
                .inspect_err(|error| env.mistake(format!("telemetry cannot be exported: {error}")))
                .ok()
                .flatten()
        });
        Self { spans, export }
    }

    /// The recorder of spans, when a collector is configured.
    pub(crate) fn tracer(&self) -> Option<SdkTracer> {
        let tracer = self.export.as_ref()?.provider.tracer("mesh");
        span::enable();
        Some(tracer)
    }

    /// Adds what becomes of spans to what is shown.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.add(&list::TELEMETRY_SPANS, self.spans.clone());
    }

    /// Sends what is left, for two seconds at most.
    pub(crate) fn stop(self) {
        let Some(Export { runtime, provider }) = self.export else { return };
        // What could not leave is lost; that is no failure of the service.
        let _ = provider.shutdown_with_timeout(STOP_WITHIN);
        runtime.shutdown_background();
    }
}

impl Export {
    /// `None` where the exporter's own variables are wrong, which is then among the mistakes of the
    /// configuration.
    fn start(env: &mut Env, endpoint: &str, resource: Resource, counts: &Counts) -> io::Result<Option<Self>> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("telemetry").enable_all().build()?;
        let within = env.milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", EXPORT_WITHIN_MS);
        let collector = Collector::new(runtime.handle().clone(), within, endpoint.starts_with("https:"))?;
        Ok(spans::provider(env, collector, resource, counts).map(|provider| Self { runtime, provider }))
    }
}

/// Where spans are to go, by the standard variables; the exporter reads the same ones for itself.
fn traces_endpoint(env: &mut Env) -> Option<String> {
    if env.flag("OTEL_SDK_DISABLED", false) {
        return None;
    }
    let endpoint = env.optional("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let endpoint = endpoint.or_else(|| env.optional("OTEL_EXPORTER_OTLP_ENDPOINT"))?;
    let exporter = env.optional("OTEL_TRACES_EXPORTER");
    exporter.is_none_or(|exporter| exporter == "otlp").then_some(endpoint)
}

/// Who sends: the workload, unless the standard variables give it another name.
fn resource(env: &Env, workload: &'static str, version: &str) -> Resource {
    let named = env.optional("OTEL_SERVICE_NAME").is_some()
        || env.optional("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|text| text.contains("service.name="));
    let resource = Resource::builder()
        .with_attribute(KeyValue::new("service.version", version.to_owned()))
        .with_attribute(KeyValue::new("service.instance.id", nuid::next().to_string()));
    match named {
        true => resource.build(),
        false => resource.with_attribute(KeyValue::new("service.name", workload)).build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(pairs: &[(&str, &str)]) -> Option<String> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        traces_endpoint(&mut Env::of(pairs))
    }

    #[test]
    fn the_standard_variables_say_where_spans_go() {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://other/t");
        assert_eq!(endpoint(&[]), None);
        assert_eq!(endpoint(&[all]).as_deref(), Some(all.1));
        assert_eq!(endpoint(&[all, own]).as_deref(), Some(own.1));
        assert_eq!(endpoint(&[all, ("OTEL_TRACES_EXPORTER", "none")]), None);
        assert_eq!(endpoint(&[all, ("OTEL_TRACES_EXPORTER", "otlp")]).as_deref(), Some(all.1));
        assert_eq!(endpoint(&[all, ("OTEL_SDK_DISABLED", "true")]), None);
    }
}
