//! The metrics as OTLP: made of their page, whose form is ours and which is written anyway, by the list that names them.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header::CONTENT_TYPE};
use mesh_telemetry::{Kind, Metric as Listed, list};
use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    metrics::v1::{
        AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
        ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point,
    },
    resource::v1::Resource,
};
use percent_encoding::percent_decode_str;
use prost::Message;
use tokio::sync::mpsc;

use super::{Counts, collector::Collector, now_ns};
use crate::Env;

/// Pushes pages of metrics.
pub(super) struct Pushes {
    endpoint: Uri,
    headers: HeaderMap,
    collector: Collector,
    resource: Resource,
    begun_ns: u64,
    counts: Counts,
}

impl Pushes {
    /// To this endpoint, with the headers of the standard variables.
    pub(super) fn new(
        env: &mut Env,
        endpoint: &str,
        collector: Collector,
        resource: &opentelemetry_sdk::Resource,
        counts: Counts,
    ) -> Option<Self> {
        let Ok(endpoint) = endpoint.parse() else {
            env.mistake("the endpoint for metrics is no URL");
            return None;
        };
        let headers = env.optional("OTEL_EXPORTER_OTLP_METRICS_HEADERS");
        let headers = headers.or_else(|| env.optional("OTEL_EXPORTER_OTLP_HEADERS")).unwrap_or_default();
        let Some(headers) = read_headers(&headers) else {
            env.mistake("OTEL_EXPORTER_OTLP_HEADERS cannot be read");
            return None;
        };
        let attributes = resource.iter().map(|(name, value)| attribute(name.as_str(), &value.as_str()));
        let resource = Resource { attributes: attributes.collect(), ..Resource::default() };
        Some(Self { endpoint, headers, collector, resource, begun_ns: now_ns(), counts })
    }

    /// Pushes page after page, until there is nobody any more who gives some.
    pub(super) async fn run(self, mut pages: mpsc::Receiver<String>) {
        while let Some(page) = pages.recv().await {
            let message = self.message(&page).encode_to_vec();
            let mut request = Request::new(Bytes::from(message));
            *request.method_mut() = Method::POST;
            *request.uri_mut() = self.endpoint.clone();
            *request.headers_mut() = self.headers.clone();
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
            let is_taken =
                self.collector.post(request).await.is_ok_and(|answer| answer.status().is_success());
            let counted = if is_taken { &self.counts.exported } else { &self.counts.failed };
            counted.inc();
        }
    }

    fn message(&self, page: &str) -> ExportMetricsServiceRequest {
        let scope = InstrumentationScope { name: "mesh".to_owned(), ..InstrumentationScope::default() };
        let metrics = metrics(page, self.begun_ns, now_ns());
        let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() }];
        let resource = Some(self.resource.clone());
        let resource_metrics = ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() };
        ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }
    }
}

/// `name=value,name=value`, percent-encoded (as in W3C baggage).
fn read_headers(text: &str) -> Option<HeaderMap> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            Some((name.trim().parse::<HeaderName>().ok()?, value.parse::<HeaderValue>().ok()?))
        })
        .collect()
}

fn attribute(name: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(value.to_owned())) });
    KeyValue { key: name.to_owned(), value, ..KeyValue::default() }
}

/// The labels of a sample without `le`, as the page writes them, and the values that belong together.
type Samples<'a> = BTreeMap<String, Vec<Sample<'a>>>;

struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

/// The metrics of a page in the text form of OpenMetrics.
fn metrics(page: &str, begun_ns: u64, now_ns: u64) -> Vec<Metric> {
    let mut found: BTreeMap<&str, Samples<'_>> = BTreeMap::new();
    let families: Vec<(String, &Listed)> = list::ALL.iter().map(|listed| (listed.sample(), listed)).collect();
    for sample in page.lines().filter_map(read_sample) {
        let is_of = |(name, listed): &&(String, &Listed)| match listed.kind {
            Kind::Histogram => ["_bucket", "_sum", "_count"]
                .iter()
                .any(|end| sample.name.strip_suffix(end) == Some(name.as_str())),
            _ => name == sample.name,
        };
        let Some((_, listed)) = families.iter().find(is_of) else { continue };
        let others = sample.labels.iter().filter(|(label, _)| *label != "le");
        let key = others.map(|(label, value)| format!("{label}={value:?},")).collect();
        found.entry(listed.name).or_default().entry(key).or_default().push(sample);
    }
    let listed = list::ALL.iter().filter(|listed| listed.kind != Kind::Info);
    let times = (begun_ns, now_ns);
    listed.filter_map(|listed| Some(metric(listed, found.remove(listed.name)?, times))).collect()
}

fn metric(listed: &Listed, samples: Samples<'_>, times: (u64, u64)) -> Metric {
    let groups = samples.into_values();
    let numbers = |groups: std::collections::btree_map::IntoValues<String, Vec<Sample<'_>>>| {
        groups.flatten().map(|sample| number(listed, &sample, times)).collect()
    };
    let temporality = AggregationTemporality::Cumulative.into();
    let data = match listed.kind {
        Kind::Gauge | Kind::Info => Data::Gauge(Gauge { data_points: numbers(groups) }),
        Kind::Counter => Data::Sum(Sum {
            data_points: numbers(groups),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: groups.map(|samples| histogram(listed, &samples, times)).collect(),
            aggregation_temporality: temporality,
        }),
    };
    Metric {
        name: listed.name.to_owned(),
        description: listed.tells.to_owned(),
        unit: listed.unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn number(listed: &Listed, sample: &Sample<'_>, (begun_ns, now_ns): (u64, u64)) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(listed, sample),
        start_time_unix_nano: if listed.kind == Kind::Counter { begun_ns } else { 0 },
        time_unix_nano: now_ns,
        value: Some(number_data_point::Value::AsDouble(sample.value)),
        ..NumberDataPoint::default()
    }
}

/// A page counts all values up to a bound, OTLP those between two.
fn histogram(listed: &Listed, samples: &[Sample<'_>], times: (u64, u64)) -> HistogramDataPoint {
    let mut point = HistogramDataPoint {
        start_time_unix_nano: times.0,
        time_unix_nano: times.1,
        ..HistogramDataPoint::default()
    };
    let mut before = 0;
    for sample in samples {
        if point.attributes.is_empty() {
            point.attributes = attributes(listed, sample);
        }
        let count = sample.value as u64;
        if sample.name.ends_with("_sum") {
            point.sum = Some(sample.value);
        } else if sample.name.ends_with("_count") {
            point.count = count;
        } else if let Some((_, bound)) = sample.labels.iter().find(|(label, _)| *label == "le") {
            point.bucket_counts.push(count.saturating_sub(before));
            before = count;
            point.explicit_bounds.extend(bound.parse::<f64>().ok().filter(|bound| bound.is_finite()));
        }
    }
    point
}

/// The labels by the names that the list gives them.
fn attributes(listed: &Listed, sample: &Sample<'_>) -> Vec<KeyValue> {
    let named = |label: &str| listed.labels.iter().find(|name| name.replace('.', "_") == label);
    // An empty label is none.
    let labels = sample.labels.iter().filter(|(label, value)| *label != "le" && !value.is_empty());
    labels.map(|(label, value)| attribute(named(label).unwrap_or(label), value)).collect()
}

/// `name{label="value",…} number`
fn read_sample(line: &str) -> Option<Sample<'_>> {
    if line.starts_with('#') {
        return None;
    }
    let name_ends = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(name_ends);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, quoted) = rest.trim_start_matches(',').split_once("=\"")?;
            let (value, length) = unquoted(quoted)?;
            labels.push((label, value));
            rest = &quoted[length..];
        }
        rest = &rest[1..];
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { name, labels, value })
}

/// A quoted value up to its quote, and its length with that.
fn unquoted(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, at + 1)),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use mesh_telemetry::{Calls, Registry};
    use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};

    use super::*;

    fn attributes_of(attributes: &[KeyValue]) -> Vec<(String, String)> {
        let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|value| value.value.as_ref()) {
            Some(Value::StringValue(text)) => text.clone(),
            other => panic!("{other:?}"),
        };
        attributes.iter().map(|pair| (pair.key.clone(), text(&pair.value))).collect()
    }

    #[test]
    fn a_page_becomes_the_metrics_that_were_registered() {
        let mut registry = Registry::default();
        let calls = Calls::of("mesh");
        calls.add_to(&mut registry, &list::RPC_SERVER_CALL_DURATION);
        for seconds in [0.0001, 0.003, 0.004, 60.0] {
            calls.counted("Get \"x\",{y}\n\\", 0).observe(seconds);
        }
        let pulled = Family::<[(&str, &str); 1], Counter>::default();
        pulled.get_or_create(&[("operation", "A")]).inc_by(5);
        pulled.get_or_create(&[("operation", "B")]).inc_by(7);
        registry.add(&list::EXPORT_PULLED, pulled);
        let height: Gauge = Gauge::default();
        height.set(-3);
        registry.add(&list::STORE_HEIGHT, height);
        let metrics = metrics(&registry.text().unwrap(), 10, 20);
        let names: Vec<_> =
            metrics.iter().map(|metric| (metric.name.as_str(), metric.unit.as_str())).collect();
        assert_eq!(
            names,
            [
                ("rpc.server.call.duration", "s"),
                ("mesh.store.height", "{block}"),
                ("mesh.export.pulled", "By")
            ]
        );
        let Some(Data::Histogram(histogram)) = &metrics[0].data else { panic!("{:?}", metrics[0]) };
        let [point] = histogram.data_points.as_slice() else { panic!("{histogram:?}") };
        assert_eq!(
            attributes_of(&point.attributes),
            [
                ("rpc.system.name".to_owned(), "mesh".to_owned()),
                ("rpc.method".to_owned(), "Get \"x\",{y}\n\\".to_owned()),
                ("rpc.response.status_code".to_owned(), "OK".to_owned())
            ]
        );
        assert_eq!((point.count, point.sum), (4, Some(60.0071)));
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), 4);
        assert_eq!((point.bucket_counts[0], point.bucket_counts[4]), (1, 2), "up to 0.25 ms, up to 5 ms");
        assert_eq!(point.bucket_counts.last(), Some(&1), "above all bounds");
        let Some(Data::Gauge(gauge)) = &metrics[1].data else { panic!("{:?}", metrics[1]) };
        assert_eq!(gauge.data_points[0].value, Some(number_data_point::Value::AsDouble(-3.0)));
        let Some(Data::Sum(sum)) = &metrics[2].data else { panic!("{:?}", metrics[2]) };
        assert!(sum.is_monotonic && sum.data_points.len() == 2);
        assert_eq!((sum.data_points[0].start_time_unix_nano, sum.data_points[0].time_unix_nano), (10, 20));
        assert_eq!(attributes_of(&sum.data_points[1].attributes), [("operation".to_owned(), "B".to_owned())]);
    }

    #[test]
    fn headers_are_read_as_the_standard_writes_them() {
        let headers = read_headers("api-key = a%20b , x=y=z,").unwrap();
        assert_eq!(
            (headers.len(), &headers["api-key"], &headers["x"]),
            (2, &"a b".parse().unwrap(), &"y=z".parse().unwrap())
        );
        assert!(read_headers("").unwrap().is_empty());
        assert!(read_headers("no value").is_none() && read_headers("bad name=1").is_none());
    }
}
