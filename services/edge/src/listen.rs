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
            make_room(&listener)?;
            listener.set_nonblocking(true)?;
            tracing::info!(name, address = %listener.local_addr()?, "listening");
            listeners.push(TcpListener::from_std(listener)?);
        }
    }
    Ok(listeners)
}

/// Lets many connections wait. Whoever bound the socket has said a number already; said again, it counts anew.
fn make_room(listener: &std::net::TcpListener) -> io::Result<()> {
    SockRef::from(listener).listen(BACKLOG)
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
        make_room(&listener).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(20)).unwrap();
        // Nobody is let in meanwhile.
        let waiting: Vec<TcpStream> = (0..BURST).map(connect).collect();
        assert_eq!(waiting.len(), BURST);
    }
}
