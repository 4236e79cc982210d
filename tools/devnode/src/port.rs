//! A port that stays the same through restarts of whoever listens on it.

use std::{io, net::SocketAddr};

use tokio::net::TcpSocket;

/// A port of this machine that nobody else is given as long as this value lives. Nothing listens here: while
/// the node is down, whoever connects is turned away at once, as by any node that is down.
#[derive(Debug)]
pub struct ReservedPort {
    address: SocketAddr,
    _socket: TcpSocket,
}

impl ReservedPort {
    /// Takes a free one.
    pub fn take() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // A process that sets this, too, can listen on the port beside this socket.
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        Ok(Self { address: socket.local_addr()?, _socket: socket })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn one_after_the_other_can_listen_and_in_between_nobody_answers() {
        let port = ReservedPort::take().unwrap();
        for _ in 0..2 {
            let refused = TcpStream::connect(port.address()).await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            let listener = std::net::TcpListener::bind(port.address()).unwrap();
            TcpStream::connect(port.address()).await.unwrap();
            drop(listener);
        }
    }
}
