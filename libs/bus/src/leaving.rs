//! Giving up a subscription in a queue group without losing a message.

use std::time::Duration;

use async_nats::{Message, Subject, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::{sleep, timeout};

use crate::connection::Bus;

/// More than can be on its way to a replica in the moment in which it leaves.
const FENCE: u64 = 256;

/// Pause before a replica whose fence others got sends more of it, and how long it tries.
const FENCE_PAUSE: Duration = Duration::from_millis(20);
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// Gives a subscription up without losing what the server sends until it knows of that. The client's own way of draining
/// forgets the subscription on its side first, and what comes then is dropped. So server and client agree on a number
/// of messages after which both forget it, and empty ones fill what requests do not: whoever gets one ignores it.
/// Says whether that worked; without a bus, or where nothing may be published there, it does not.
pub(crate) async fn leave(
    bus: &Bus,
    requests: &mut Subscriber,
    received: u64,
    fence: Subject,
    take: &impl Fn(Message),
) -> bool {
    let client = &bus.shared.client;
    if !bus.is_connected() || requests.unsubscribe_after(received + FENCE).await.is_err() {
        return false;
    }
    let left = async {
        loop {
            for _ in 0..FENCE {
                if client.publish(fence.clone(), Bytes::new()).await.is_err() {
                    return false;
                }
            }
            let pause = sleep(FENCE_PAUSE);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    message = requests.next() => match message {
                        Some(message) => take(message),
                        None => return true,
                    },
                    () = &mut pause => break,
                }
            }
        }
    };
    timeout(LEAVE_WITHIN, left).await.unwrap_or(false)
}
