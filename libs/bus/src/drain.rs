//! Ends a subscription in a queue group without losing a message.

use std::time::Duration;

use async_nats::{Message, Subject, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::{sleep, timeout};

use crate::connection::Bus;

/// Markers of one round: more than the messages that can be on their way when the subscription ends.
const MARKERS: u64 = 256;

/// Pause between two rounds of markers, in case other replicas of the group received some of the first.
const ROUND_PAUSE: Duration = Duration::from_millis(20);
/// Longest time for all rounds.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Ends a subscription after `received` messages without losing those in transit. (The client's own drain
/// removes the subscription first and drops the messages that still arrive.) Server and client agree to end
/// it [`MARKERS`] messages later, and empty messages to `marker_subject` make up that number; replicas ignore
/// them. Returns `false` without a connection, or when publishing to `marker_subject` is not allowed.
pub(crate) async fn drain_subscription(
    bus: &Bus,
    requests: &mut Subscriber,
    received: u64,
    marker_subject: Subject,
    handle: &impl Fn(Message),
) -> bool {
    let client = &bus.shared.client;
    if !bus.is_connected() || requests.unsubscribe_after(received + MARKERS).await.is_err() {
        return false;
    }
    let drained = async {
        loop {
            for _ in 0..MARKERS {
                if client.publish(marker_subject.clone(), Bytes::new()).await.is_err() {
                    return false;
                }
            }
            let pause = sleep(ROUND_PAUSE);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    message = requests.next() => match message {
                        Some(message) => handle(message),
                        None => return true,
                    },
                    () = &mut pause => break,
                }
            }
        }
    };
    timeout(DRAIN_TIMEOUT, drained).await.unwrap_or(false)
}
