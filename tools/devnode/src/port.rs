//! A reserved port, which stays the same through restarts of its server.

use std::{io, net::SocketAddr};

use tokio::net::TcpSocket;

/// A port of this machine, reserved as long as this value lives by a socket that is bound and does not
/// listen. While the node is down, connections are refused at once.
#[derive(Debug)]
pub struct ReservedPort {
    address: SocketAddr,
    _socket: TcpSocket,
}

impl ReservedPort {
    /// Reserves a free port.
    pub fn take() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // Another process with the same option can listen on the port while this socket is bound.
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        Ok(Self { address: socket.local_addr()?, _socket: socket })
    }

    /// The address with the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
