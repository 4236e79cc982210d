//! The listening sockets: inherited from whoever started us (so that replicas share them and a restart loses
//! no connection), else bound here.

use std::io;

use listenfd::ListenFd;
use socket2::SockRef;
use tokio::net::TcpListener;

use crate::config::Config;

/// Connections that wait to be let in, as far as the system allows (`net.core.somaxconn`). Where there is no room for one, its
/// client tries again after a second, and then after two and four: a burst of a few hundred would cost others seconds.
const BACKLOG: i32 = 4096;

/// `TCP_NOTSENT_LOWAT`, bytes: what the system takes of an answer beyond what is on its way. Without a bound it takes
/// megabytes for a client that reads nothing, and counts them as delivered. A fast client is as fast as before.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 128 << 10;

/// Opens every listening socket.
pub(crate) fn listeners(config: &Config) -> io::Result<Vec<TcpListener>> {
    let mut inherited = ListenFd::from_env();
    let wanted = [("http", Some(config.listen)), ("grpc", config.grpc_listen)];
    let mut listeners = Vec::new();
    for (name, address) in wanted {
        let place = config.inherited_sockets.iter().position(|inherited| inherited == name);
        let listener = match (place, address) {
            (Some(place), _) => inherited.take_tcp_listener(place)?,
            (None, Some(address)) => Some(std::net::TcpListener::bind(address)?),
            (None, None) => None,
        };
        if let Some(listener) = listener {
            prepare(&listener)?;
            listener.set_nonblocking(true)?;
            tracing::info!(name, address = %listener.local_addr()?, "listening");
            listeners.push(TcpListener::from_std(listener)?);
        }
    }
    Ok(listeners)
}

/// Lets many connections wait, and bounds what lies unsent on each. Whoever bound the socket has said a number already; said
/// again, it counts anew.
fn prepare(listener: &std::net::TcpListener) -> io::Result<()> {
    let socket = SockRef::from(listener);
    // Each accepted connection inherits it; it is set nowhere else.
    #[cfg(target_os = "linux")]
    socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_waits_to_be_let_in() {
        const BURST: usize = 300;
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
        if most.ok().and_then(|most| most.trim().parse().ok()).is_none_or(|most: usize| most < BURST) {
            eprintln!("skipped: the system does not let so many connections wait");
            return;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        prepare(&listener).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(20)).unwrap();
        // Nobody is let in meanwhile.
        let waiting: Vec<TcpStream> = (0..BURST).map(connect).collect();
        assert_eq!(waiting.len(), BURST);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_answer_that_nobody_reads_stays_with_us() {
        use std::io::Write as _;

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        client.set_recv_buffer_size(4096).unwrap();
        prepare(&listener).unwrap();
        client.connect(&listener.local_addr().unwrap().into()).unwrap();
        let (mut connection, _) = listener.accept().unwrap();
        connection.set_nonblocking(true).unwrap();
        let (mut taken, answer) = (0, vec![0; 64 * 1024]);
        while let Ok(bytes) = connection.write(&answer) {
            taken += bytes;
        }
        assert!(taken < 2 * UNSENT_BYTES as usize, "{taken} bytes");
    }
}
