//! A TCP proxy between a client and a server, for tests and drills: connections can be delayed, slowed,
//! stalled and cut at any moment.
//!
//! It delivers the same bytes in the same order, later. It has no dependency on the mesh and does not interpret
//! the bytes.

mod carry;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use carry::{Carrier, reset};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::sleep,
};

/// Concurrent connections; more wait to be accepted.
const MOST_CONNECTIONS: usize = 4096;
/// Pause after a failed accept, mostly for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// The state of the line. The default forwards everything at once.
///
/// A lost TCP segment looks to both ends like a stall until it is sent again: set `stalls` for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Delay in each direction. At most 256 KiB of a connection are in transit at a time, so that a delay
    /// limits its speed as well.
    pub delay: Duration,
    /// Maximum additional delay, drawn for each piece; the order is preserved.
    pub jitter: Duration,
    /// Maximum bytes per second, in each direction of each connection.
    pub bytes_per_s: Option<NonZeroU32>,
    /// Nothing is forwarded: connections are accepted but not connected, open ones stay open, and senders
    /// block as soon as the system's buffers are full.
    pub stalls: bool,
    /// Only complete lines are forwarded; what comes after the last line feed waits for the next one, or for
    /// the end.
    pub by_lines: bool,
    /// New connections are reset at once.
    pub refuses: bool,
}

/// How a connection is cut; both ends see the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// By a reset: bytes in transit are lost, and both ends get an error.
    #[default]
    Reset,
    /// By an end of file: bytes in transit are lost, and both ends see an orderly end of the other one.
    Close,
}

/// A proxy on a free port of this machine. Dropping it ends its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    line: watch::Sender<Line>,
    cuts: watch::Sender<Cut>,
    open: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl Proxy {
    /// Starts to forward connections to an address. The seed determines all jitter. Must be called inside a
    /// tokio runtime.
    pub async fn start(to: SocketAddr, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (line, cuts) = (watch::Sender::default(), watch::Sender::default());
        let (open, refused) = (Arc::default(), Arc::default());
        let carrier = Carrier { to, line: line.subscribe(), cuts: cuts.subscribe(), seed };
        let accepting = tokio::spawn(accept(listener, carrier, Arc::clone(&open), Arc::clone(&refused)));
        Ok(Self { address, line, cuts, open, refused, accepting: accepting.abort_handle() })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the state of the line, for open connections as well.
    pub fn set(&self, line: Line) {
        self.line.send_replace(line);
    }

    /// Cuts all open connections and returns their number.
    pub fn cut(&self, how: Cut) -> usize {
        self.cuts.send_replace(how);
        self.open()
    }

    /// Number of open connections.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Number of connections refused so far.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts connections without end; dropping the future closes the forwarded ones.
async fn accept(listener: TcpListener, carrier: Carrier, open: Arc<AtomicUsize>, refused: Arc<AtomicUsize>) {
    let (mut carried, mut count) = (JoinSet::new(), 0);
    loop {
        open.store(carried.len(), Ordering::Relaxed);
        tokio::select! {
            Some(_) = carried.join_next() => {}
            accepted = listener.accept(), if carried.len() < MOST_CONNECTIONS => match accepted {
                Ok((client, _)) if carrier.refuses() => {
                    reset(&client);
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                Ok((client, _)) => {
                    count += 1;
                    carried.spawn(carrier.after_all_cuts().carry(client, count));
                }
                Err(_) => sleep(PAUSE).await,
            },
        }
    }
}
