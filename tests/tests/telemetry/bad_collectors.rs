//! A collector that is unavailable, slow or hanging does not affect requests.

use std::time::{Duration, Instant};

use mesh_testbed::{Collector, Manner, Mesh};
use mesh_tests::{NO_CACHE, fixture};

/// These reads produce more spans than the export queue holds.
const READS: usize = 200;

/// A mesh with one thread per service that records every trace.
async fn recording_mesh(endpoint: &str) -> (mesh_testbed::Database, Mesh) {
    let database = fixture::database().await;
    let setup = Mesh::configure(&database).env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    let setup = setup.env("OTEL_BSP_SCHEDULE_DELAY", "20").env("OTEL_BSP_MAX_QUEUE_SIZE", "64");
    let setup = setup.env("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "16").env("OTEL_TRACES_SAMPLER", "always_on");
    let setup = setup.env("TOKIO_WORKER_THREADS", "1").env(NO_CACHE.0, NO_CACHE.1);
    let mesh = setup.without(&["export", "node-info"]).start().await;
    (database, mesh)
}

/// The number of spans of a service with this outcome.
async fn spans(mesh: &Mesh, service: &str, outcome: &str) -> f64 {
    mesh.service(service).metric(&format!("mesh_telemetry_spans_total{{outcome={outcome:?}")).await
}

async fn read(mesh: &Mesh) {
    for read in 0..READS {
        let answer = mesh.get("/accounts").await;
        assert_eq!(answer.status, 200, "read {read}: {answer:?}");
    }
}

async fn read_and_stop(mesh: Mesh) {
    read(&mesh).await;
    for service in ["edge", "query"] {
        let stop_requested = Instant::now();
        let status = mesh.service(service).stop().await;
        // The testbed kills a service that needs more than its grace of 5 s and one second.
        assert!(status.success(), "{service}: {status} after {:?}", stop_requested.elapsed());
        let log = mesh.service(service).log();
        let warnings = log.lines().filter(|line| line.contains("does not take telemetry")).count();
        assert!(warnings <= 1, "one line is enough: {log}");
        assert!(log.contains("\"stopped\""), "{log}");
    }
}

#[tokio::test]
async fn with_a_dead_collector_nothing_fails() {
    // The port of a stopped collector refuses connections.
    let dead = Collector::start().await.url();
    let (_database, mesh) = recording_mesh(&dead).await;
    read_and_stop(mesh).await;
}

#[tokio::test]
async fn with_a_hanging_collector_and_one_thread_nothing_fails_and_what_is_lost_is_counted() {
    let collector = Collector::of(Manner::Hangs).await;
    let (_database, mesh) = recording_mesh(&collector.url()).await;
    read(&mesh).await;
    collector.until(|taken| taken.requests > 0).await;
    assert!(spans(&mesh, "edge", "dropped").await > 0.0 && spans(&mesh, "query", "dropped").await > 0.0);
    let begun = Instant::now();
    read_and_stop(mesh).await;
    assert!(begun.elapsed() < Duration::from_secs(60), "it is not waited for");
}

#[tokio::test]
async fn a_slow_collector_takes_what_it_can() {
    let collector = Collector::of(Manner::Late(Duration::from_secs(1))).await;
    let (_database, mesh) = recording_mesh(&collector.url()).await;
    read(&mesh).await;
    collector.until(|taken| taken.spans.len() >= 32).await;
    assert!(spans(&mesh, "edge", "exported").await > 0.0 && spans(&mesh, "query", "exported").await > 0.0);
}
