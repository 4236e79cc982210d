//! The standard health service: a service of the contract serves while a replica of its workload does, and the
//! nameless whole while the edge can ask anybody. From the beginning of a stop nothing serves any more.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use mesh_bus::Bus;
use proto_msgs::Contract;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, timeout},
};
use tonic_health::{ServingStatus, server::HealthReporter};

/// How often it is looked who is there.
const LOOK: Duration = Duration::from_millis(100);

/// How long a stop waits until it is told to everybody who watches.
const TOLD_WITHIN: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Stop {
    Not,
    /// It should be told.
    Asked,
    /// It was told.
    Told,
}

/// Who serves, as far as the edge knows.
pub(super) struct Health {
    stop: watch::Sender<Stop>,
}

impl Health {
    /// Follows who is there, and reports it, until a stop.
    pub(super) fn follow(bus: Bus, reporter: HealthReporter) -> Arc<Self> {
        let health = Arc::new(Self { stop: watch::Sender::new(Stop::Not) });
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
        let mut told = BTreeMap::new();
        let (mut stop, mut looks) = (self.stop.subscribe(), interval(LOOK));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_stopping = tokio::select! {
                _ = looks.tick() => false,
                asked = stop.wait_for(|stop| *stop >= Stop::Asked) => asked.is_ok(),
            };
            for (service, workload) in &workloads {
                let is_there = bus.is_connected() && (workload.is_empty() || bus.has_replica(workload));
                let status = match is_there && !is_stopping {
                    true => ServingStatus::Serving,
                    false => ServingStatus::NotServing,
                };
                if told.insert(*service, status) != Some(status) {
                    reporter.set_service_status(service, status).await;
                }
            }
            if is_stopping {
                self.stop.send_replace(Stop::Told);
                return;
            }
        }
    }

    /// Reports that nothing serves any more.
    pub(super) async fn stop(&self) {
        self.stop.send_replace(Stop::Asked);
        let mut stop = self.stop.subscribe();
        let _ = timeout(TOLD_WITHIN, stop.wait_for(|stop| *stop == Stop::Told)).await;
    }

    /// Comes when a stop has been reported.
    pub(super) fn stopped(&self) -> BoxFuture<'static, ()> {
        let mut stop = self.stop.subscribe();
        Box::pin(async move {
            let _ = stop.wait_for(|stop| *stop == Stop::Told).await;
        })
    }
}
