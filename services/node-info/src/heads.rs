//! The actor that announces the heads of store and node on the bus: at each change, and at an interval.
//!
//! Every replica announces them; receivers ignore repeats.

use std::hash::{BuildHasher, RandomState};

use actix::{Actor, ActorFutureExt, AsyncContext, Context, StreamHandler, Supervised, WrapFuture};
use mesh_bus::{ANNOUNCE_INTERVAL, Announcement, Bus, Head, NodeStatus, StoreStatus};
use mesh_chassis::changes;
use mesh_store::StoreState;
use tokio::sync::watch;

use crate::{metrics::Metrics, node::Observation};

/// Announces the heads of store and node.
pub(crate) struct HeadAnnouncer {
    bus: Bus,
    store: watch::Receiver<StoreState>,
    node: Option<watch::Receiver<Observation>>,
    /// The number of this replica.
    replica: u64,
    /// What was announced of the node since the interval began.
    announced: Option<NodeStatus>,
    metrics: Metrics,
}

/// What has changed.
#[derive(Debug, Clone, Copy)]
enum Change {
    Store,
    Node,
}

impl HeadAnnouncer {
    /// Announces the head of a store, and of a node when there is one.
    pub(crate) fn new(
        bus: Bus,
        store: watch::Receiver<StoreState>,
        node: Option<watch::Receiver<Observation>>,
        metrics: Metrics,
    ) -> Self {
        let replica = RandomState::new().hash_one(());
        Self { bus, store, node, replica, announced: None, metrics }
    }

    fn announce_store(&self, context: &mut Context<Self>) {
        let StoreState { head, is_there, .. } = *self.store.borrow();
        self.metrics.store(head.map(|(height, _)| height), is_there);
        let head = head.map(|(height, time_ns)| Head { height, time_ns });
        self.send(StoreStatus { head, is_there, replica: self.replica }, context);
    }

    /// Nothing is announced while the node does not answer.
    fn announce_node(&mut self, context: &mut Context<Self>) {
        let Some(node) = &self.node else { return };
        let state = node.borrow().state.clone();
        self.metrics.node(&state);
        let status = state.height().map(|height| NodeStatus { height });
        if std::mem::replace(&mut self.announced, status) != status
            && let Some(status) = status
        {
            self.send(status, context);
        }
    }

    fn send<N: Announcement + Sync>(&self, news: N, context: &mut Context<Self>) {
        let bus = self.bus.clone();
        let sent = async move { bus.announce(&news).await };
        context.spawn(sent.into_actor(self).map(|(), _, _| ()));
    }
}

impl Actor for HeadAnnouncer {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.add_stream(changes(self.store.clone(), Change::Store));
        if let Some(node) = &self.node {
            context.add_stream(changes(node.clone(), Change::Node));
        }
        self.announce_store(context);
        context.run_interval(ANNOUNCE_INTERVAL, |announcer, context| {
            announcer.announce_store(context);
            announcer.announced = None;
            announcer.announce_node(context);
        });
    }
}

impl Supervised for HeadAnnouncer {}

impl StreamHandler<Change> for HeadAnnouncer {
    fn handle(&mut self, change: Change, context: &mut Self::Context) {
        match change {
            Change::Store => self.announce_store(context),
            Change::Node => self.announce_node(context),
        }
    }
}
