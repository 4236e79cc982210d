//! The actor that tells everybody where store and node stand: at each change, and again and again.
//!
//! Every replica tells; whoever hears the same twice has lost nothing.

use actix::{Actor, ActorFutureExt, AsyncContext, Context, StreamHandler, Supervised, WrapFuture};
use futures_util::{Stream, stream};
use mesh_bus::{ANNOUNCE_INTERVAL, Announcement, Bus, Head, NodeStatus, StoreStatus};
use mesh_store::StoreState;
use tokio::sync::watch;

use crate::{metrics::Metrics, node::Heard};

/// Tells where store and node stand.
pub(crate) struct Heads {
    bus: Bus,
    store: watch::Receiver<StoreState>,
    node: Option<watch::Receiver<Heard>>,
    metrics: Metrics,
}

/// What has changed.
#[derive(Debug, Clone, Copy)]
enum Change {
    Store,
    Node,
}

impl Heads {
    /// Tells of a store, and of a node when there is one to ask.
    pub(crate) fn new(
        bus: Bus,
        store: watch::Receiver<StoreState>,
        node: Option<watch::Receiver<Heard>>,
        metrics: Metrics,
    ) -> Self {
        Self { bus, store, node, metrics }
    }

    fn tell_store(&self, context: &mut Context<Self>) {
        let StoreState { head, is_there } = *self.store.borrow();
        self.metrics.store(head.map(|(height, _)| height), is_there);
        let head = head.map(|(height, time_ns)| Head { height, time_ns });
        self.announce(StoreStatus { head, is_there }, context);
    }

    /// A node that does not answer is no news.
    fn tell_node(&self, context: &mut Context<Self>) {
        let Some(node) = &self.node else { return };
        let state = node.borrow().state.clone();
        self.metrics.node(&state);
        if let Some(height) = state.height() {
            self.announce(NodeStatus { height }, context);
        }
    }

    fn announce<N: Announcement + Sync>(&self, news: N, context: &mut Context<Self>) {
        let bus = self.bus.clone();
        let told = async move { bus.announce(&news).await };
        context.spawn(told.into_actor(self).map(|(), _, _| ()));
    }
}

impl Actor for Heads {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.add_stream(changes(self.store.clone(), Change::Store));
        if let Some(node) = &self.node {
            context.add_stream(changes(node.clone(), Change::Node));
        }
        self.tell_store(context);
        context.run_interval(ANNOUNCE_INTERVAL, |heads, context| {
            heads.tell_store(context);
            heads.tell_node(context);
        });
    }
}

impl Supervised for Heads {}

impl StreamHandler<Change> for Heads {
    fn handle(&mut self, change: Change, context: &mut Self::Context) {
        match change {
            Change::Store => self.tell_store(context),
            Change::Node => self.tell_node(context),
        }
    }
}

/// One item for each change that is seen; several at once may be one.
fn changes<T: Send + Sync + 'static>(
    watched: watch::Receiver<T>,
    change: Change,
) -> impl Stream<Item = Change> {
    stream::unfold(watched, move |mut watched| async move {
        watched.changed().await.ok()?;
        Some((change, watched))
    })
}
