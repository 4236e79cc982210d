//! Export of recorded spans to a collector as OTLP over HTTP, when one is configured. It runs on threads of
//! its own: the service queues a span without waiting. Metrics are scraped from the admin port instead.
//!
//! Configured by the standard variables (`OTEL_EXPORTER_OTLP_ENDPOINT` and the like). Without an endpoint
//! there are neither threads nor spans.

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

/// Longest time for sending the last spans when the process stops.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// Timeout of one request to the collector, milliseconds, unless `OTEL_EXPORTER_OTLP_TIMEOUT` is set.
const EXPORT_WITHIN_MS: u64 = 10_000;

/// Counts of exported and lost spans.
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

/// The export of spans, when it is configured.
pub(crate) struct Telemetry {
    spans: ByOutcome,
    export: Option<Export>,
}

/// The parts of the export.
struct Export {
    runtime: Runtime,
    provider: SdkTracerProvider,
}

impl Telemetry {
    /// Starts the threads, when a collector is configured. Invalid values are mistakes of the configuration.
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

    /// Adds the counts of spans to the metrics.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.add(&list::TELEMETRY_SPANS, self.spans.clone());
    }

    /// Sends the remaining spans, for two seconds at most.
    pub(crate) fn stop(self) {
        let Some(Export { runtime, provider }) = self.export else { return };
        // Spans that could not be sent are lost, which is not an error of the service.
        let _ = provider.shutdown_with_timeout(STOP_WITHIN);
        runtime.shutdown_background();
    }
}

impl Export {
    /// `None` when the exporter's own variables are invalid, which is added to the mistakes of the
    /// configuration.
    fn start(env: &mut Env, endpoint: &str, resource: Resource, counts: &Counts) -> io::Result<Option<Self>> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("telemetry").enable_all().build()?;
        let within = env.milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", EXPORT_WITHIN_MS);
        let collector = Collector::new(runtime.handle().clone(), within, endpoint.starts_with("https:"))?;
        Ok(spans::provider(env, collector, resource, counts).map(|provider| Self { runtime, provider }))
    }
}

/// The endpoint for spans by the standard variables, which the exporter reads by itself, too.
fn traces_endpoint(env: &mut Env) -> Option<String> {
    if env.flag("OTEL_SDK_DISABLED", false) {
        return None;
    }
    let endpoint = env.optional("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let endpoint = endpoint.or_else(|| env.optional("OTEL_EXPORTER_OTLP_ENDPOINT"))?;
    let exporter = env.optional("OTEL_TRACES_EXPORTER");
    let is_otlp = |exporters: String| exporters.split(',').any(|exporter| exporter.trim() == "otlp");
    exporter.is_none_or(is_otlp).then_some(endpoint)
}

/// The resource of the spans: the workload, unless the standard variables set another name.
fn resource(env: &Env, workload: &'static str, version: &str) -> Resource {
    let named = env.optional("OTEL_SERVICE_NAME").is_some()
        || env.optional("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|text| is_service_named(&text));
    let resource = Resource::builder()
        .with_attribute(KeyValue::new("service.version", version.to_owned()))
        .with_attribute(KeyValue::new("service.instance.id", nuid::next().to_string()));
    match named {
        true => resource.build(),
        false => resource.with_attribute(KeyValue::new("service.name", workload)).build(),
    }
}

/// Whether a list of attributes, `name=value` between commas, names the service.
fn is_service_named(attributes: &str) -> bool {
    attributes
        .split(',')
        .any(|pair| pair.split_once('=').is_some_and(|(name, _)| name.trim() == "service.name"))
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
        assert_eq!(endpoint(&[all, ("OTEL_TRACES_EXPORTER", "console, otlp")]).as_deref(), Some(all.1));
        assert_eq!(endpoint(&[all, ("OTEL_SDK_DISABLED", "True")]), None);
    }

    #[test]
    fn only_an_attribute_of_this_name_names_the_service() {
        assert!(
            is_service_named("a=b, service.name=x")
                && !is_service_named("peer.service.name=x,a=service.name=")
        );
    }
}
