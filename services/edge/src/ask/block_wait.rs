//! The wait of a read as of a block that is not stored yet (B3).

use std::time::Duration;

use http::HeaderMap;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{
    ask::{
        cache::Question,
        heads::{ChainHeads, HeadSource},
    },
    decode::preferences::wait_seconds,
};

/// Pause before the second call of a service whose replica does not have the block yet; doubled before each
/// further one.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Longest pause between two calls.
const MAX_PAUSE: Duration = Duration::from_millis(160);

/// How long a read waits for its block.
#[derive(Debug)]
pub(crate) struct BlockWait {
    at_block: u64,
    seconds: u64,
    until: Instant,
    pause: Duration,
    has_waited: bool,
}

impl BlockWait {
    /// The wait from now on: of a read as of a block whose client prefers to wait.
    pub(crate) fn of_request(question: &Question, headers: &HeaderMap) -> Option<Self> {
        let at_block = question.at_block?;
        let seconds = wait_seconds(headers).filter(|seconds| *seconds > 0)?;
        let until = Instant::now() + Duration::from_secs(seconds);
        Some(Self { at_block, seconds, until, pause: FIRST_PAUSE, has_waited: false })
    }

    /// The seconds of the wait, if the read has waited.
    pub(crate) fn applied(&self) -> Option<u64> {
        self.has_waited.then_some(self.seconds)
    }

    /// Whether the time of the wait is over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Waits until the store is known to have the block, or until the time is over. While a replica is behind that
    /// store, it is called again after a pause.
    pub(super) async fn before_next_read(&mut self, heads: &ChainHeads) {
        if heads.newest() < self.at_block {
            self.until_stored(heads).await;
        } else {
            self.pause().await;
        }
    }

    /// Waits until the store is known to have the block, or until the time is over.
    async fn until_stored(&mut self, heads: &ChainHeads) {
        // Subscribed before the height is read, so that no block is missed.
        let mut changes = heads.changes(HeadSource::Store);
        while heads.newest() < self.at_block && !self.is_over() {
            self.has_waited = true;
            if !matches!(timeout_at(self.until, changes.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Waits before the next call of a service that does not have the block.
    async fn pause(&mut self) {
        self.has_waited = true;
        sleep_until(self.until.min(Instant::now() + self.pause)).await;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use http::HeaderValue;

    use super::*;
    use crate::decode::preferences::PREFER;

    fn wait(at_block: Option<u64>, prefer: &'static str) -> Option<BlockWait> {
        let question = Question { at_block, ..Question::default() };
        let headers = HeaderMap::from_iter([(PREFER, HeaderValue::from_static(prefer))]);
        BlockWait::of_request(&question, &headers)
    }

    #[tokio::test]
    async fn it_waits_until_the_block_is_stored_and_no_longer_than_preferred() {
        let heads = Arc::new(ChainHeads::default());
        heads.observe(7);
        let mut stored = wait(Some(7), "wait=5").unwrap();
        stored.until_stored(&heads).await;
        assert_eq!(stored.applied(), None, "the block is there");

        let mut awaited = wait(Some(8), "wait=5").unwrap();
        assert!(awaited.until_stored(&heads).now_or_never().is_none());
        heads.observe(8);
        assert!(awaited.until_stored(&heads).now_or_never().is_some());
        assert_eq!((awaited.applied(), awaited.is_over()), (Some(5), false));

        let (mut late, began) = (wait(Some(9), "wait=2").unwrap(), Instant::now());
        late.until = began + Duration::from_millis(50);
        late.until_stored(&heads).await;
        assert_eq!((late.applied(), late.is_over()), (Some(2), true));
        assert!(began.elapsed() < Duration::from_secs(2));
    }

    #[tokio::test]
    async fn pauses_grow_and_end_with_the_wait() {
        let mut wait = wait(Some(8), "wait=1").unwrap();
        wait.until = Instant::now() + Duration::from_millis(60);
        let mut pauses = 0;
        while !wait.is_over() {
            wait.pause().await;
            pauses += 1;
        }
        assert!((1..=3).contains(&pauses), "{pauses}");
        assert_eq!((wait.applied(), wait.pause), (Some(1), FIRST_PAUSE * 2_u32.pow(pauses)));
    }
}
