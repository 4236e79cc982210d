//! Metrics of the process: CPU, memory and files, read from `/proc` at each scrape.

use std::{cell::Cell, fs, sync::atomic::AtomicU64, time::Instant};

use mesh_telemetry::{Registry, list};
use prometheus_client::metrics::{counter::Counter, gauge::Gauge, info::Info};

/// Adds the metrics of the process. Must be called inside a tokio runtime.
pub(crate) fn register(registry: &mut Registry, workload: &'static str, version: &'static str) {
    let memory: Gauge = registry.added(&list::PROCESS_MEMORY_USAGE, Gauge::default());
    let files: Gauge = registry.added(&list::PROCESS_FILES, Gauge::default());
    let most: Gauge = registry.added(&list::PROCESS_FILES_MAX, Gauge::default());
    let threads: Gauge = registry.added(&list::PROCESS_THREADS, Gauge::default());
    let tasks: Gauge = registry.added(&list::PROCESS_TASKS, Gauge::default());
    let cpu = registry.added(&list::PROCESS_CPU_TIME, Counter::<f64, AtomicU64>::default());
    let uptime = registry.added(&list::PROCESS_UPTIME, Gauge::<f64, AtomicU64>::default());
    registry.add(&list::TARGET, Info::new([("service_name", workload), ("service_version", version)]));
    let (started, counted) = (Instant::now(), Cell::new(0.0));
    let runtime = tokio::runtime::Handle::current();
    registry.on_scrape(move || {
        let used = cpu_seconds();
        if used > counted.get() {
            cpu.inc_by(used - counted.replace(used));
        }
        uptime.set(started.elapsed().as_secs_f64());
        tasks.set(whole(runtime.metrics().num_alive_tasks() as u64));
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        most.set(limit.map_or(i64::MAX, whole));
        // A system without `/proc` has none of these metrics.
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            // Reading the folder opens one more.
            files.set(i64::try_from(entries.count()).unwrap_or(i64::MAX).saturating_sub(1));
        }
        if let Ok(status) = fs::read_to_string("/proc/self/status") {
            memory.set(whole(number_of(&status, "VmRSS:").unwrap_or(0).saturating_mul(1024)));
            threads.set(whole(number_of(&status, "Threads:").unwrap_or(0)));
        }
    });
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number after a name in the text of `/proc/self/status`.
fn number_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// CPU time of all threads so far.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_shows_what_it_uses() {
        let mut registry = Registry::default();
        register(&mut registry, "edge", "1.2.3");
        let text = registry.text().unwrap();
        let value = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.split([' ', '{']).next() == Some(name));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).rsplit(' ').next().unwrap().parse().unwrap()
        };
        let shown = |metric: &mesh_telemetry::Metric| value(&metric.sample());
        assert!(shown(&list::PROCESS_MEMORY_USAGE) > 1e6 && shown(&list::PROCESS_CPU_TIME) > 0.0);
        assert!(shown(&list::PROCESS_FILES) >= 3.0 && shown(&list::PROCESS_FILES_MAX) >= 16.0);
        assert!(shown(&list::PROCESS_THREADS) >= 1.0 && shown(&list::TARGET) == 1.0);
    }
}
