//! One connection through the proxy: two directions, each with a short queue of pieces that wait for their
//! delivery times.

use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
    time::Duration,
};

use bytes::BytesMut;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout},
};

use crate::{Cut, Line};

/// Greatest piece that is read at once, and number of pieces queued in a direction: 256 KiB.
const PIECE_BYTES: usize = 16 << 10;
const PIECES: usize = 16;
/// Writes per second of a slowed line, so that it is evenly slow.
const WRITES_PER_S: u32 = 20;
/// Time for both ends to close, too, after a cut by end of file.
const FINISH_WITHIN: Duration = Duration::from_secs(1);

/// Forwards connections to one address.
#[derive(Clone, Debug)]
pub(crate) struct Carrier {
    pub(crate) to: SocketAddr,
    pub(crate) line: watch::Receiver<Line>,
    pub(crate) cuts: watch::Receiver<Cut>,
    pub(crate) seed: u64,
}

/// A piece and its delivery time.
type Piece = (Instant, BytesMut);

impl Carrier {
    /// Whether new connections are refused.
    pub(crate) fn refuses(&self) -> bool {
        self.line.borrow().refuses
    }

    /// A clone for a new connection, which earlier cuts do not affect.
    pub(crate) fn after_all_cuts(&self) -> Self {
        let mut carrier = self.clone();
        carrier.cuts.mark_unchanged();
        carrier
    }

    /// Forwards a connection until it ends.
    pub(crate) async fn carry(mut self, mut client: TcpStream, number: u64) {
        let mut line = self.line.clone();
        let connect = async {
            wait_while_stalled(&mut line).await?;
            TcpStream::connect(self.to).await
        };
        let connected = tokio::select! {
            connected = connect => connected,
            how = cut(&mut self.cuts) => return end(&mut [client], how).await,
        };
        let Ok(mut server) = connected else { return reset(&client) };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let random = |direction: u64| SmallRng::seed_from_u64(self.seed ^ (2 * number + direction));
        let ended = {
            let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
            let upstream = pump(from_client, to_server, self.line.clone(), random(0));
            let downstream = pump(from_server, to_client, self.line.clone(), random(1));
            tokio::select! {
                ended = async { tokio::try_join!(upstream, downstream) } => ended.err().map(|_| Cut::Reset),
                how = cut(&mut self.cuts) => Some(how),
            }
        };
        // Without a cut the end of each direction has been forwarded already.
        if let Some(how) = ended {
            end(&mut [client, server], how).await;
        }
    }
}

/// Waits for the next cut; never resolves after the proxy is dropped.
async fn cut(cuts: &mut watch::Receiver<Cut>) -> Cut {
    match cuts.changed().await {
        Ok(()) => *cuts.borrow_and_update(),
        Err(_) => std::future::pending().await,
    }
}

async fn end(streams: &mut [TcpStream], how: Cut) {
    match how {
        Cut::Reset => streams.iter().for_each(reset),
        Cut::Close => {
            for stream in &mut *streams {
                // Fails when the connection has already ended.
                let _ = stream.shutdown().await;
            }
            // Reads the rest: closing a socket with unread bytes would send a reset.
            let _ = timeout(FINISH_WITHIN, async {
                for stream in streams {
                    let mut unread = [0; 4096];
                    while stream.read(&mut unread).await.is_ok_and(|read| read > 0) {}
                }
            })
            .await;
        }
    }
}

/// Makes a connection end by a reset when it is dropped.
pub(crate) fn reset(stream: &TcpStream) {
    // Fails when the connection has already ended.
    let _ = stream.set_zero_linger();
}

/// Waits while the line stalls.
async fn wait_while_stalled(line: &mut watch::Receiver<Line>) -> io::Result<()> {
    line.wait_for(|line| !line.stalls).await.map(|_| ()).map_err(io::Error::other)
}

/// Forwards one direction until it ends.
async fn pump(
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    line: watch::Receiver<Line>,
    random: SmallRng,
) -> io::Result<()> {
    let (sender, pieces) = mpsc::channel(PIECES);
    tokio::try_join!(read_pieces(from, sender, line.clone(), random), write_pieces(to, pieces, line))
        .map(|_| ())
}

/// Reads pieces and sets their delivery times. What is no complete line is held back where these alone are
/// forwarded.
async fn read_pieces(
    from: ReadHalf<'_>,
    pieces: mpsc::Sender<Piece>,
    mut line: watch::Receiver<Line>,
    mut random: SmallRng,
) -> io::Result<()> {
    let mut last = Instant::now();
    let mut held = BytesMut::new();
    loop {
        let Ok(queue_slot) = pieces.reserve().await else { return Ok(()) };
        wait_while_stalled(&mut line).await?;
        from.readable().await?;
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        let ended = match from.try_read_buf(&mut piece) {
            Ok(count) => count == 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        held.unsplit(piece);
        let Line { delay, jitter, by_lines, .. } = *line.borrow();
        let after_last_line = || held.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let complete = if by_lines && !ended { after_last_line() } else { held.len() };
        last = last.max(Instant::now() + delay + jitter.mul_f64(random.random()));
        queue_slot.send((last, held.split_to(complete)));
        if ended {
            return Ok(());
        }
    }
}

/// Writes each piece at its delivery time, and closes the direction after the last one.
async fn write_pieces(
    mut to: WriteHalf<'_>,
    mut pieces: mpsc::Receiver<Piece>,
    mut line: watch::Receiver<Line>,
) -> io::Result<()> {
    let mut free = Instant::now();
    while let Some((due, piece)) = pieces.recv().await {
        sleep_until(due).await;
        let mut remaining = &piece[..];
        while !remaining.is_empty() {
            wait_while_stalled(&mut line).await?;
            let rate = line.borrow().bytes_per_s;
            let most = rate.map_or(u32::MAX, |rate| (rate.get() / WRITES_PER_S).max(1));
            let (now, later) = remaining.split_at(remaining.len().min(most as usize));
            to.write_all(now).await?;
            remaining = later;
            if let Some(rate) = rate {
                let duration = Duration::from_secs_f64(now.len() as f64 / f64::from(rate.get()));
                free = free.max(Instant::now()) + duration;
                sleep_until(free).await;
            }
        }
    }
    to.shutdown().await
}
