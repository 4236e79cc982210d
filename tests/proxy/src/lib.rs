//! A TCP proxy between two parties, for tests and drills: what passes it can be delayed, slowed, held up and
//! cut at any moment.
//!
//! Comes in: where to forward to, and how the line is now. Goes out: the same bytes in the same order, later;
//! never other bytes. Knows nothing of ours, and nothing of what it carries.

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
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::sleep,
};

/// Connections at the same time; more wait to be accepted.
const MOST_CONNECTIONS: usize = 4096;
/// Pause when the system gives no connection, mostly for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// How a line is. The default carries everything at once.
///
/// Segments that are lost on the way look to both ends of a TCP connection as if the line stood still until
/// they are sent again: set `stalls` for a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// How much later everything comes, each way. At most 256 KiB of a connection are on their way at a
    /// time, so that a delay bounds its speed, too.
    pub delay: Duration,
    /// Up to so much more, another time for each piece; the order is kept.
    pub jitter: Duration,
    /// Bytes a second at most, each way of each connection.
    pub bytes_per_s: Option<NonZeroU32>,
    /// Nothing passes: connections are accepted and lead nowhere, those that are open stay so, and whoever
    /// sends is held up as soon as the system's buffers are full.
    pub stalls: bool,
    /// New connections are reset as soon as they are made.
    pub refuses: bool,
}

/// How a connection is cut; both its ends see the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// By a reset: what is on its way is lost, and both ends get an error.
    #[default]
    Reset,
    /// By an end of file: what is on its way is lost, and both ends believe that the other one has finished.
    Close,
}

/// A proxy on a free port of this machine. It ends with this value, and its connections with it.
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
    /// Begins to forward connections to an address. The seed decides every jitter. Must be called inside a
    /// tokio runtime.
    pub async fn start(to: SocketAddr, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (line, cuts) = (watch::Sender::default(), watch::Sender::default());
        let (open, refused) = (Arc::default(), Arc::default());
        let carrier = Carrier::new(to, &line, &cuts, seed);
        let accepting = tokio::spawn(accept(listener, carrier, Arc::clone(&open), Arc::clone(&refused)));
        Ok(Self { address, line, cuts, open, refused, accepting: accepting.abort_handle() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How its line is now.
    pub fn line(&self) -> Line {
        *self.line.borrow()
    }

    /// Changes the line from now on, for open connections, too.
    pub fn set(&self, line: Line) {
        self.line.send_replace(line);
    }

    /// Cuts all open connections, and says how many there were.
    pub fn cut(&self, how: Cut) -> usize {
        self.cuts.send_replace(how);
        self.open()
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// How many connections it has refused so far.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts connections for ever; those that it carries end with it.
async fn accept(listener: TcpListener, carrier: Carrier, open: Arc<AtomicUsize>, refused: Arc<AtomicUsize>) {
    let (mut carried, mut count) = (JoinSet::new(), 0);
    loop {
        tokio::select! {
            Some(_) = carried.join_next() => {}
            accepted = listener.accept(), if carried.len() < MOST_CONNECTIONS => match accepted {
                Ok((client, _)) if carrier.refuses() => {
                    reset(&client);
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                Ok((client, _)) => {
                    count += 1;
                    carried.spawn(counted(client, carrier.after_all_cuts(), count, Open::begin(&open)));
                }
                Err(_) => sleep(PAUSE).await,
            },
        }
    }
}

async fn counted(client: TcpStream, carrier: Carrier, number: u64, _open: Open) {
    carrier.carry(client, number).await;
}

/// One open connection.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
