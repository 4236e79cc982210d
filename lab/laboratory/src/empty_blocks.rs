//! Empty blocks in a store that no node writes into.

use std::time::Duration;

use tokio::{
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use crate::private::Servers;

/// The statement that writes an empty block after the newest one and returns its height.
pub(crate) const NEXT_BLOCK: &str = include_str!("next_block.sql");

const PERIOD: Duration = Duration::from_secs(1);

/// A block a second until this is dropped. A database that restarts delays blocks.
pub(crate) struct EmptyBlocks(JoinHandle<()>);

impl EmptyBlocks {
    pub(crate) fn write(servers: &Servers) -> Self {
        let url = servers.database_url.clone();
        Self(tokio::spawn(async move {
            let mut period = interval(PERIOD);
            period.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                if let Ok(database) = mesh_store::connect(&url, "mesh laboratory").await {
                    while database.execute(NEXT_BLOCK, &[]).await.is_ok() {
                        period.tick().await;
                    }
                }
                period.tick().await;
            }
        }))
    }
}

impl Drop for EmptyBlocks {
    fn drop(&mut self) {
        self.0.abort();
    }
}
