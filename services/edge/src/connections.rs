//! The accept loop: bounds connections, times their heads, and closes them in order.

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::join_all};
use hyper::service::{Service, service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    config::{Config, Limits},
    http::{HttpService, with_path},
    metrics::Metrics,
    patience::{Answering, Kept, Patient},
};

/// Greatest buffer of a connection, so that thousands of slow clients cost little.
const BUFFER_BYTES: usize = 64 << 10;

/// Most requests at the same time on one HTTP/2 connection.
const STREAMS: u32 = 128;

/// The open connections of this process.
pub(crate) struct Connections {
    stop: watch::Sender<bool>,
    loops: Vec<JoinHandle<GracefulShutdown>>,
}

impl Connections {
    /// Accepts on all listeners from when `ready` comes until drained.
    pub(crate) fn accept<S: HttpService>(
        listeners: Vec<TcpListener>,
        service: &S,
        config: &Config,
        metrics: &Metrics,
        ready: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let ready = ready.boxed().shared();
        let (stop, stopped) = watch::channel(false);
        let room = Arc::new(Semaphore::new(config.limits.connections));
        let builder = Arc::new(builder(&config.limits));
        let accept = |listener| {
            let door = Door {
                service: service.clone(),
                builder: Arc::clone(&builder),
                limits: config.limits,
                metrics: metrics.clone(),
            };
            let (room, stopped, ready) = (Arc::clone(&room), stopped.clone(), ready.clone());
            tokio::spawn(async move {
                ready.await;
                door.accept(listener, room, stopped).await
            })
        };
        Self { stop, loops: listeners.into_iter().map(accept).collect() }
    }

    /// Stops accepting, lets every connection finish its running requests (at most this long), closes.
    pub(crate) async fn drain(self, grace: Duration) {
        self.stop.send_replace(true);
        let finished = async {
            // All at once: the connections of one listener do not wait for those of another to hear of it.
            join_all(self.loops.into_iter().map(|accept| async {
                if let Ok(connections) = accept.await {
                    connections.shutdown().await;
                }
            }))
            .await;
        };
        if timeout(grace, finished).await.is_err() {
            tracing::warn!("closing connections that are still busy");
        }
    }
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().header_read_timeout(None).max_buf_size(BUFFER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(BUFFER_BYTES)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10));
    builder
}

/// How a connection is let in.
struct Door<S> {
    service: S,
    builder: Arc<auto::Builder<TokioExecutor>>,
    limits: Limits,
    metrics: Metrics,
}

impl<S: HttpService> Door<S> {
    /// Lets connections in while there is room; comes to those still open.
    async fn accept(
        self,
        listener: TcpListener,
        room: Arc<Semaphore>,
        mut stop: watch::Receiver<bool>,
    ) -> GracefulShutdown {
        let open = GracefulShutdown::new();
        loop {
            let next = async {
                let permit = Arc::clone(&room).acquire_owned().await;
                (permit, listener.accept().await)
            };
            tokio::select! {
                () = stopped(&mut stop) => return open,
                (Ok(permit), accepted) = next => match accepted {
                    Ok((stream, _)) => self.serve(stream, permit, &open),
                    Err(error) => {
                        // Out of file descriptors, mostly: wait for connections to close.
                        tracing::warn!(%error, "cannot accept");
                        sleep(Duration::from_millis(50)).await;
                    }
                },
                else => return open,
            }
        }
    }

    fn serve(&self, stream: TcpStream, permit: OwnedSemaphorePermit, open: &GracefulShutdown) {
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(self.service.clone());
        let answering = Arc::new(Answering::default());
        let patient = Patient::new(stream, Arc::clone(&answering), self.limits.head_time, self.limits.idle);
        let service = service_fn(move |request| {
            let in_flight = answering.begin();
            let answered = service.call(with_path(request));
            async move { answered.await.map(|response| response.map(|body| Kept { body, _request: in_flight })) }
        });
        let (builder, watcher, metrics) = (Arc::clone(&self.builder), open.watcher(), self.metrics.clone());
        tokio::spawn(async move {
            metrics.connections.inc();
            let connection = builder.serve_connection(TokioIo::new(patient), service).into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(error, "a connection broke");
            }
            metrics.connections.dec();
            drop(permit);
        });
    }
}

/// Comes when the process is told to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
