//! The changes of a watched value, as an actor takes them.

use futures_util::{Stream, stream};
use tokio::sync::watch;

/// A stream with this item per observed change; changes in quick succession may give one item. It ends with the sender.
pub fn changes<T, C>(watched: watch::Receiver<T>, item: C) -> impl Stream<Item = C>
where
    T: Send + Sync + 'static,
    C: Copy + 'static,
{
    stream::unfold(watched, move |mut watched| async move {
        watched.changed().await.ok()?;
        Some((item, watched))
    })
}
