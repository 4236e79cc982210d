//! The thread that writes endless responses. A block can mean ten thousand events, which take longer to write than
//! a hundred plain reads. A separate thread with a lower priority writes them, so that they never delay plain reads.

use std::{future::pending, io, thread};

use rustix::process::nice;
use tokio::runtime::{Builder, Handle};

/// Priority of the thread on the scale of `nice`; on Linux each thread has its own.
const NICE: i32 = 10;

/// A handle to the thread, which runs as long as the process.
#[derive(Debug, Clone)]
pub(super) struct WriterThread(Handle);

impl WriterThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
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
