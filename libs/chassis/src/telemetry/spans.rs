//! Export of recorded spans to the collector: a bounded queue, sent by a separate thread. When the queue is
//! full, spans are dropped and counted; recording a span never waits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use opentelemetry::Context;
use opentelemetry_otlp::{SpanExporter as Otlp, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{
        BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, Span, SpanData, SpanExporter,
        SpanProcessor,
    },
};

use super::{Counts, collector::Collector};
use crate::Env;

/// Capacity of the queue, unless `OTEL_BSP_MAX_QUEUE_SIZE` is set.
const QUEUE: usize = 2048;

/// Records every span. The edge has decided before which requests have spans.
pub(super) fn provider(
    env: &mut Env,
    collector: Collector,
    resource: Resource,
    counts: &Counts,
) -> Option<SdkTracerProvider> {
    let exporter = match Otlp::builder().with_http().with_http_client(collector).build() {
        Ok(exporter) => exporter,
        Err(error) => {
            env.mistake(format!("traces cannot be exported as configured: {error}"));
            return None;
        }
    };
    let (queued, room) = (Arc::<AtomicUsize>::default(), env.positive("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE));
    let exporter = Counting { exporter, queued: Arc::clone(&queued), counts: counts.clone() };
    let batches = BatchSpanProcessor::builder(exporter)
        .with_batch_config(BatchConfigBuilder::default().with_max_queue_size(room).build())
        .build();
    let queue = Queue { batches, queued, room, counts: counts.clone() };
    let provider = SdkTracerProvider::builder().with_span_processor(queue).with_sampler(Sampler::AlwaysOn);
    Some(provider.with_resource(resource).build())
}

/// The queue and the number of spans in it.
#[derive(Debug)]
struct Queue {
    batches: BatchSpanProcessor,
    queued: Arc<AtomicUsize>,
    room: usize,
    counts: Counts,
}

impl SpanProcessor for Queue {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.queued.fetch_add(1, Ordering::Relaxed) >= self.room {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            self.counts.dropped.inc();
            return;
        }
        self.batches.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// The exporter, with counts of sent and lost spans.
#[derive(Debug)]
struct Counting {
    exporter: Otlp,
    queued: Arc<AtomicUsize>,
    counts: Counts,
}

impl SpanExporter for Counting {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.exporter.export(batch).await;
        self.queued.fetch_sub(spans, Ordering::Relaxed);
        let counted = if result.is_ok() { &self.counts.exported } else { &self.counts.failed };
        counted.inc_by(spans as u64);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
