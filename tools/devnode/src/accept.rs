//! Accepts connections, with a limit of concurrent ones. Dropping the future closes all of them.

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::sleep,
};

/// Pause after an error of accept, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs `serve` for each connection, at most `most` at a time, until dropped.
pub(crate) async fn accept<F>(
    listener: TcpListener,
    most: usize,
    mut serve: impl FnMut(TcpStream) -> F,
) -> Infallible
where
    F: Future<Output = ()> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(most));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return std::future::pending().await;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        let served = serve(stream);
        connections.spawn(async move {
            let _permit = permit;
            served.await;
        });
    }
}
