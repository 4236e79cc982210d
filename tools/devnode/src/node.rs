//! A running node: its chain, and its RPC on a port of this machine.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    net::TcpListener,
    task::JoinHandle,
    time::{Instant, sleep},
};

use crate::{chain::Chain, server::serve, settings::Settings};

/// How long to retry while the port is in use, as by connections of the previous process.
const BIND_PATIENCE: Duration = Duration::from_secs(5);
const BIND_PAUSE: Duration = Duration::from_millis(50);

/// A running node; dropping it stops the RPC.
#[derive(Debug)]
pub struct DevNode {
    chain: Chain,
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl DevNode {
    /// Opens the chain as [`Chain::open`] does and answers on an address; port 0 takes a free one.
    pub async fn start(settings: Settings, listen: SocketAddr) -> io::Result<Self> {
        let chain = Chain::open(settings).await?;
        let listener = bind(listen).await?;
        let address = listener.local_addr()?;
        let served = chain.clone();
        let serving = tokio::spawn(async move { match serve(listener, address, served).await {} });
        Ok(Self { chain, address, serving })
    }

    /// Its chain, on which the caller makes blocks.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The address of its RPC.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a URL: `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for DevNode {
    /// Closes all connections at once, also during an answer.
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Listens on an address, retrying while the previous process still has it.
async fn bind(listen: SocketAddr) -> io::Result<TcpListener> {
    let deadline = Instant::now() + BIND_PATIENCE;
    loop {
        match TcpListener::bind(listen).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                sleep(BIND_PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}
