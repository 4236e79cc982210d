//! The thread that writes answers without an end. Ten thousand watchers are sent an event each at a block, which
//! takes longer than a hundred plain reads: on a thread of their own, which gives way to others, their events
//! stand in front of nobody.

use std::{future::pending, io, thread};

use rustix::process::nice;
use tokio::runtime::{Builder, Handle};

/// How much less the thread weighs than others, on the scale of `nice`. On Linux each thread has its own.
const NICE: i32 = 10;

/// The thread, which lives as long as the process.
#[derive(Debug, Clone)]
pub(super) struct WriterThread(Handle);

impl WriterThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives none.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new().name("writer".to_owned()).spawn(move || {
            if let Err(error) = nice(NICE) {
                tracing::warn!(%error, "watches weigh as much as plain reads");
            }
            runtime.block_on(pending::<()>());
        })?;
        Ok(Self(handle))
    }

    /// Runs a task on the thread.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(task);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::process::getpriority_process;
    use tokio::{sync::oneshot, time::timeout};

    use super::*;

    #[tokio::test]
    async fn its_tasks_weigh_less_than_others() {
        let (sender, receiver) = oneshot::channel();
        WriterThread::start().unwrap().spawn(async {
            // The priority of the calling thread.
            sender.send(getpriority_process(None)).unwrap();
        });
        let there = timeout(Duration::from_secs(20), receiver).await.unwrap().unwrap().unwrap();
        assert_eq!(there, (getpriority_process(None).unwrap() + NICE).min(19));
    }
}
