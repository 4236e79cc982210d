//! The standard health service: a service of the contract serves while a replica of its workload does, the
//! empty name while the edge is connected to the bus. From the beginning of a shutdown nothing serves.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use mesh_bus::Bus;
use proto_msgs::Contract;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, timeout},
};
use tonic_health::{ServingStatus, server::HealthReporter};

/// Interval of the checks.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Longest wait of a shutdown until watchers have its report.
const REPORT_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Shutdown {
    NotRequested,
    Requested,
    /// Watchers have the report.
    Reported,
}

/// Reports which services serve.
pub(super) struct Health {
    shutdown: watch::Sender<Shutdown>,
}

impl Health {
    /// Starts to report, until a shutdown.
    pub(super) fn start(bus: Bus, reporter: HealthReporter) -> Arc<Self> {
        let health = Arc::new(Self { shutdown: watch::Sender::new(Shutdown::NotRequested) });
        tokio::spawn(Arc::clone(&health).report(bus, reporter));
        health
    }

    async fn report(self: Arc<Self>, bus: Bus, reporter: HealthReporter) {
        let workloads: BTreeMap<&str, &str> = Contract::get()
            .operations()
            .iter()
            .map(|operation| (operation.service.as_str(), operation.workload.as_str()))
            .chain([("", "")])
            .collect();
        let mut reported = BTreeMap::new();
        let (mut shutdown, mut ticks) = (self.shutdown.subscribe(), interval(POLL_INTERVAL));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_stopping = tokio::select! {
                _ = ticks.tick() => false,
                requested = shutdown.wait_for(|phase| *phase >= Shutdown::Requested) => requested.is_ok(),
            };
            for (service, workload) in &workloads {
                let is_served = bus.is_connected() && (workload.is_empty() || bus.has_replica(workload));
                let status = match is_served && !is_stopping {
                    true => ServingStatus::Serving,
                    false => ServingStatus::NotServing,
                };
                if reported.insert(*service, status) != Some(status) {
                    reporter.set_service_status(service, status).await;
                }
            }
            if is_stopping {
                self.shutdown.send_replace(Shutdown::Reported);
                return;
            }
        }
    }

    /// Reports that nothing serves any more.
    pub(super) async fn shut_down(&self) {
        self.shutdown.send_replace(Shutdown::Requested);
        let mut shutdown = self.shutdown.subscribe();
        let _ = timeout(REPORT_TIMEOUT, shutdown.wait_for(|phase| *phase == Shutdown::Reported)).await;
    }

    /// Resolves when a shutdown has been reported.
    pub(super) fn shutdown_reported(&self) -> BoxFuture<'static, ()> {
        let mut shutdown = self.shutdown.subscribe();
        Box::pin(async move {
            let _ = shutdown.wait_for(|phase| *phase == Shutdown::Reported).await;
        })
    }
}
