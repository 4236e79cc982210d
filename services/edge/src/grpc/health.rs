//! The standard gRPC health service. A service of the contract is SERVING while a replica of its workload is; the
//! empty name is SERVING while the edge is connected to the bus; during a shutdown all are NOT_SERVING. A watch
//! of another name gets SERVICE_UNKNOWN and stays open, as the protocol requires.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::{
    StreamExt,
    future::{BoxFuture, ready},
    stream::{self, BoxStream},
};
use mesh_bus::Bus;
use proto_msgs::Contract;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, timeout},
};
use tonic::{Code, Request, Response, Status};
use tonic_health::{
    ServingStatus,
    pb::{
        HealthCheckRequest, HealthCheckResponse,
        health_check_response::ServingStatus::ServiceUnknown,
        health_server::{self, HealthServer},
    },
    server::{HealthReporter, HealthService},
};

/// The service of watches.
const WATCH_SERVICE: &str = "api.v2.Watch";

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

/// The health service of the library, with watches of unknown services by the protocol.
pub(super) struct StandardHealth(HealthService);

#[tonic::async_trait]
impl health_server::Health for StandardHealth {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        self.0.check(request).await
    }

    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        match self.0.watch(request).await {
            Ok(response) => Ok(response.map(StreamExt::boxed)),
            Err(status) if status.code() == Code::NotFound => {
                let unknown = HealthCheckResponse { status: ServiceUnknown.into() };
                // All services are known from the start, so none becomes known later.
                Ok(Response::new(stream::once(ready(Ok(unknown))).chain(stream::pending()).boxed()))
            }
            Err(status) => Err(status),
        }
    }
}

impl Health {
    /// Starts to report until a shutdown. Also returns the gRPC service.
    pub(super) async fn start(bus: Bus) -> (Arc<Self>, HealthServer<StandardHealth>) {
        let health = Arc::new(Self { shutdown: watch::Sender::new(Shutdown::NotRequested) });
        let reporter = HealthReporter::new();
        let workloads: BTreeMap<&str, &str> = Contract::get()
            .operations()
            .iter()
            .map(|operation| (operation.service.as_str(), operation.workload.as_str()))
            // Services that the edge implements itself are serving while the edge is.
            .chain([("", ""), (WATCH_SERVICE, "")])
            .collect();
        for service in workloads.keys() {
            reporter.set_service_status(service, ServingStatus::NotServing).await;
        }
        let server = HealthServer::new(StandardHealth(HealthService::from_health_reporter(reporter.clone())));
        tokio::spawn(Arc::clone(&health).report(bus, reporter, workloads));
        (health, server)
    }

    /// Reports the services of these workloads.
    async fn report(
        self: Arc<Self>,
        bus: Bus,
        reporter: HealthReporter,
        workloads: BTreeMap<&'static str, &'static str>,
    ) {
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
