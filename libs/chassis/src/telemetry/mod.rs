//! Telemetry on its way out, when a collector is configured: recorded spans, and now and then all metrics, as OTLP over
//! HTTP. It lives on threads of its own; the service hands over what it has without waiting and goes on.
//!
//! The standard variables decide (`OTEL_EXPORTER_OTLP_ENDPOINT` and its kin). Without an endpoint there is none of this:
//! no thread, no span.

mod collector;
mod metrics;
mod spans;

use std::{
    io,
    time::{Duration, Instant, SystemTime},
};

use mesh_telemetry::{Registry, list, span};
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracer, SdkTracerProvider},
};
use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc,
    task::JoinHandle,
};

use self::{collector::Collector, metrics::Pushes};
use crate::Env;

/// Longest time for the last telemetry at the end.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// For one push, unless `OTEL_EXPORTER_OTLP_TIMEOUT` is set.
const PUSH_WITHIN_MS: u64 = 10_000;

/// Between two pushes of the metrics, unless `OTEL_METRIC_EXPORT_INTERVAL` is set.
const PUSH_EVERY_MS: u64 = 60_000;

/// What became of spans, or of pushes.
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

/// Where telemetry goes.
pub(crate) struct Telemetry {
    spans: ByOutcome,
    pushes: ByOutcome,
    out: Option<Out>,
}

/// What is there when a collector is configured.
struct Out {
    runtime: Runtime,
    provider: Option<SdkTracerProvider>,
    push: Option<Push>,
}

struct Push {
    /// Has room for one: who is slower than the pushes gets the newest of them only now and then.
    pages: mpsc::Sender<String>,
    every: Duration,
    pushing: JoinHandle<()>,
    counts: Counts,
}

impl Telemetry {
    /// Starts the threads, when there is a collector. What cannot work is a mistake of the configuration.
    pub(crate) fn start(env: &mut Env, workload: &'static str, version: &str) -> Self {
        let (spans, pushes) = (ByOutcome::default(), ByOutcome::default());
        let counts = (Counts::of(&spans), Counts::of(&pushes));
        let endpoints = Endpoints::read(env);
        let out = match endpoints.any() {
            true => Out::start(env, &endpoints, resource(env, workload, version), counts)
                .inspect_err(|error| env.mistake(format!("telemetry cannot be exported: {error}")))
                .ok(),
            false => None,
        };
        Self { spans, pushes, out }
    }

    /// Who records spans, if anybody does.
    pub(crate) fn tracer(&self) -> Option<SdkTracer> {
        let tracer = self.out.as_ref()?.provider.as_ref()?.tracer("mesh");
        span::switch_on();
        Some(tracer)
    }

    /// Adds what becomes of telemetry to what is shown.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.add(&list::TELEMETRY_SPANS, self.spans.clone());
        registry.add(&list::TELEMETRY_PUSHES, self.pushes.clone());
    }

    /// How often the metrics are pushed, if they are.
    pub(crate) fn push_every(&self) -> Option<Duration> {
        Some(self.out.as_ref()?.push.as_ref()?.every)
    }

    /// Pushes the metrics, as their page shows them.
    pub(crate) fn push(&self, page: String) {
        if let Some(push) = self.out.as_ref().and_then(|out| out.push.as_ref())
            && push.pages.try_send(page).is_err()
        {
            push.counts.dropped.inc();
        }
    }

    /// Sends what is left, for two seconds at most.
    pub(crate) fn stop(self) {
        let Some(Out { runtime, provider, push }) = self.out else { return };
        let until = Instant::now() + STOP_WITHIN;
        // Without a sender the pushing ends behind the last page, while the spans leave.
        let pushing = push.map(|push| push.pushing);
        if let Some(provider) = provider {
            // What could not leave is lost; that is no failure of the service.
            let _ = provider.shutdown_with_timeout(until - Instant::now());
        }
        if let Some(pushing) = pushing {
            let left = until.saturating_duration_since(Instant::now());
            let _ = runtime.block_on(async { tokio::time::timeout(left, pushing).await });
        }
        runtime.shutdown_background();
    }
}

impl Out {
    fn start(
        env: &mut Env,
        endpoints: &Endpoints,
        resource: Resource,
        (spans, pushes): (Counts, Counts),
    ) -> io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("telemetry").enable_all().build()?;
        let within = env.milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", PUSH_WITHIN_MS);
        let collector = Collector::new(runtime.handle().clone(), within, endpoints.with_tls())?;
        let push = endpoints.metrics.as_ref().and_then(|endpoint| {
            let every = env.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", PUSH_EVERY_MS);
            let pushes_to = Pushes::new(env, endpoint, collector.clone(), &resource, pushes.clone())?;
            let (pages, waiting) = mpsc::channel(1);
            let pushing = runtime.spawn(pushes_to.run(waiting));
            Some(Push { pages, every, pushing, counts: pushes })
        });
        let provider = endpoints.traces.then(|| spans::provider(env, collector, resource, &spans)).flatten();
        Ok(Self { runtime, provider, push })
    }
}

/// What is sent where, by the standard variables.
#[derive(Debug)]
struct Endpoints {
    /// The exporter of spans reads its endpoint itself.
    traces: bool,
    metrics: Option<String>,
    addresses: Vec<String>,
}

impl Endpoints {
    fn read(env: &mut Env) -> Self {
        if env.flag("OTEL_SDK_DISABLED", false) {
            return Self { traces: false, metrics: None, addresses: Vec::new() };
        }
        let is_meant = |env: &Env, name: &str| env.optional(name).is_none_or(|exporter| exporter == "otlp");
        let all = env.optional("OTEL_EXPORTER_OTLP_ENDPOINT");
        let traces = env.optional("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| all.clone());
        let traces = traces.filter(|_| is_meant(env, "OTEL_TRACES_EXPORTER"));
        let below = |all: String| format!("{}/v1/metrics", all.trim_end_matches('/'));
        let metrics = env.optional("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT").or_else(|| all.map(below));
        let metrics = metrics.filter(|_| is_meant(env, "OTEL_METRICS_EXPORTER"));
        let addresses = traces.iter().chain(&metrics).cloned().collect();
        Self { traces: traces.is_some(), metrics, addresses }
    }

    fn any(&self) -> bool {
        !self.addresses.is_empty()
    }

    fn with_tls(&self) -> bool {
        self.addresses.iter().any(|address| address.starts_with("https:"))
    }
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

/// Nanoseconds since the Unix epoch.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(pairs: &[(&str, &str)]) -> Endpoints {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Endpoints::read(&mut Env::of(pairs))
    }

    #[test]
    fn the_standard_variables_say_what_goes_where() {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");
        assert!(!endpoints(&[]).any());
        let both = endpoints(&[all]);
        assert!(both.traces && !both.with_tls());
        assert_eq!(both.metrics.as_deref(), Some("http://collector:4318/v1/metrics"));
        let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://other/m");
        assert_eq!(endpoints(&[all, own]).metrics.as_deref(), Some("https://other/m"));
        assert!(endpoints(&[own]).with_tls() && !endpoints(&[own]).traces);
        assert_eq!(endpoints(&[all, ("OTEL_METRICS_EXPORTER", "none")]).metrics, None);
        assert!(!endpoints(&[all, ("OTEL_TRACES_EXPORTER", "none")]).traces);
        assert!(!endpoints(&[all, ("OTEL_SDK_DISABLED", "true")]).any());
    }
}
