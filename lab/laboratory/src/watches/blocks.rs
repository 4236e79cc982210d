//! Writes blocks at a constant rate, each with changes of the watched rows.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use mesh::failure::{Failure, cannot};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use super::HeightAt;
use crate::empty_blocks::NEXT_BLOCK;
use crate::private::Servers;

/// The changes of a block.
pub(crate) struct Changes {
    /// The time between two blocks.
    pub(crate) period: Duration,
    /// The statement that changes rows: `$1` is the new text, the block's height, `$2` the rows' ids.
    pub(crate) statement: &'static str,
    /// The ids of the rows that change with the block of a height.
    pub(crate) ids: Box<dyn Fn(u64) -> Vec<String> + Send + Sync>,
}

/// A writer of blocks, until it is dropped.
pub(crate) struct Blocks {
    written: watch::Receiver<Vec<HeightAt>>,
    writing: JoinHandle<()>,
}

impl Blocks {
    /// Starts to write.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub(crate) async fn write(servers: &Servers, changes: Changes) -> Result<Self, Failure> {
        let mut database = servers.connect("").await?;
        let (sender, written) = watch::channel(Vec::new());
        let mut ticks = interval(changes.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let writing = tokio::spawn(async move {
            loop {
                ticks.tick().await;
                let block = async {
                    let transaction = database.transaction().await?;
                    let height: i64 = transaction.query_one(NEXT_BLOCK, &[]).await?.get(0);
                    let ids = (changes.ids)(height.unsigned_abs());
                    transaction.execute(changes.statement, &[&height.to_string(), &ids]).await?;
                    transaction.commit().await?;
                    Ok::<u64, tokio_postgres::Error>(height.unsigned_abs())
                };
                match block.await {
                    Ok(height) => sender.send_modify(|written| written.push((height, Instant::now()))),
                    Err(error) => {
                        mesh::terminal::print_line(&cannot("write a block", &error).to_string());
                        return;
                    }
                }
            }
        });
        Ok(Self { written, writing })
    }

    /// The blocks that were committed in this period.
    pub(crate) fn written(&self, from: Instant, to: Instant) -> Vec<HeightAt> {
        self.written.borrow().iter().filter(|(_, at)| *at >= from && *at <= to).copied().collect()
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

/// The times from each block's COMMIT to each receipt by a client.
pub(crate) fn delays(written: &[HeightAt], received: &[HeightAt]) -> Vec<Duration> {
    let committed: HashMap<u64, Instant> = written.iter().copied().collect();
    let delay = |(height, at): &HeightAt| Some(at.saturating_duration_since(*committed.get(height)?));
    received.iter().filter_map(delay).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_counts_from_the_commit_of_the_received_block() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let received = [(4, at(11)), (5, at(14)), (6, at(20)), (5, at(30))];
        assert_eq!(delays(&[(5, at(10)), (6, at(20))], &received), [4, 0, 20].map(Duration::from_millis));
    }
}
