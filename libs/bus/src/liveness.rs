//! Heartbeats of replicas over the bus: sending, listening, and probing those that are silent.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until, timeout};

use crate::{
    connection::{Bus, Shared},
    inbox::Arrival,
    replicas::{Heartbeat, PROBE_INTERVAL, ReplicaGroup},
    subjects::{self, HEARTBEATS, PROBE, WAKE},
};

/// Interval of the checks for silent replicas while requests are sent.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The same while none are sent.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl Bus {
    /// Starts to listen for heartbeats, once.
    pub(crate) fn listen_for_replicas(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.shared.replicas.start_listening() {
            runtime.spawn(listen(Arc::downgrade(&self.shared)));
        }
    }

    /// Whether a replica of a workload takes requests, by its heartbeats of the last seconds: one that is
    /// only slow does, one that the bus knows to be gone does not. Heartbeats are listened for from the first
    /// [`Bus::target`] on; a replica that has just started sends its first within 100 ms.
    pub fn has_replica(&self, workload: &str) -> bool {
        self.shared.replicas.group(workload).is_taking(Instant::now())
    }

    /// Sends the heartbeat of a replica of a workload.
    pub(crate) async fn send_heartbeat(&self, workload: &str, heartbeat: &Heartbeat) {
        self.publish_event(&format!("{HEARTBEATS}.{workload}"), heartbeat).await;
    }

    /// Records that a request is sent; wakes the replicas when that is due.
    pub(crate) async fn record_request(&self) {
        if self.shared.replicas.activity.record(Instant::now(), self.is_connected()) {
            self.publish_event(WAKE, &()).await;
        }
    }

    /// Sends a probe to a silent replica. The bus answers at once when nothing is subscribed; a frozen
    /// replica gives no answer.
    async fn probe(self, workload: String, id: Arc<str>, group: Arc<ReplicaGroup>) {
        let mut pending = self.shared.inbox.register(&workload);
        let subject = subjects::direct(&self.subject(&workload, PROBE), &id);
        let reply_to = pending.reply_to.clone();
        let sent = self.shared.client.publish_with_reply(subject, reply_to, Vec::new().into());
        if sent.await.is_err() {
            return;
        }
        if let Ok(Arrival::NoResponder) = timeout(PROBE_INTERVAL, pending.arrival()).await {
            group.remove(&id);
        }
    }
}

async fn listen(shared: Weak<Shared>) {
    let Some(bus) = shared.upgrade().map(|shared| Bus { shared }) else { return };
    let all = bus.event_subject(&format!("{HEARTBEATS}.*"));
    let mut heartbeats = match bus.shared.client.subscribe(all).await {
        Ok(heartbeats) => heartbeats,
        Err(error) => {
            tracing::error!(error = mesh_problem::error_chain(&error), "cannot listen for replicas");
            return;
        }
    };
    // Then every live replica is known in a moment.
    bus.record_request().await;
    let activity = Arc::clone(&bus.shared.replicas.activity);
    drop(bus);
    let mut check_at = Instant::now();
    loop {
        tokio::select! {
            heartbeat = heartbeats.next() => {
                let (Some(message), Some(shared)) = (heartbeat, shared.upgrade()) else { return };
                let workload = message.subject.rsplit('.').next().unwrap_or_default();
                if let Ok(heartbeat) = serde_json::from_slice::<Heartbeat>(&message.payload) {
                    shared.replicas.group(workload).record(&heartbeat, Instant::now());
                }
            }
            () = activity.began() => check_at = Instant::now() + CHECK_INTERVAL,
            () = sleep_until(check_at) => {
                let now = Instant::now();
                check_at = now + if activity.is_busy(now) { CHECK_INTERVAL } else { IDLE_CHECK_INTERVAL };
                let Some(bus) = shared.upgrade().map(|shared| Bus { shared }) else { return };
                for (workload, group) in bus.shared.replicas.groups() {
                    for id in group.check(now) {
                        tokio::spawn(bus.clone().probe(workload.clone(), id, Arc::clone(&group)));
                    }
                }
            }
        }
    }
}
