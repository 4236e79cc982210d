//! The listening sockets: inherited from the parent process (so that replicas share them and a restart loses
//! no connection), else bound here.

use std::io;

use listenfd::ListenFd;
use mesh_chassis::cannot_listen;
use socket2::SockRef;
use tokio::net::TcpListener;

use crate::config::Config;
#[cfg(target_os = "linux")]
use crate::config::UNCONFIRMED_TIMEOUT;

/// Length of the accept queue, as far as the system allows (`net.core.somaxconn`). A client whose connection
/// finds it full retries after 1, 2 and 4 s.
const BACKLOG: i32 = 4096;

/// `TCP_NOTSENT_LOWAT`, bytes: unsent data that the kernel buffers for a connection. Without it the kernel
/// takes megabytes for a client that reads nothing.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 128 << 10;

/// Opens every listening socket.
///
/// # Errors
/// When a socket cannot be bound or configured.
pub(crate) fn listeners(config: &Config) -> io::Result<Vec<TcpListener>> {
    let mut inherited = ListenFd::from_env();
    let addresses = [
        ("http", "MESH_EDGE_LISTEN", Some(config.listen)),
        ("grpc", "MESH_EDGE_GRPC_LISTEN", config.grpc_listen),
    ];
    let mut listeners = Vec::new();
    for (name, variable, address) in addresses {
        let index = config.inherited_sockets.iter().position(|inherited| inherited == name);
        let listener = match (index, address) {
            (Some(index), _) => inherited.take_tcp_listener(index)?,
            (None, Some(address)) => {
                let bound = std::net::TcpListener::bind(address);
                Some(bound.map_err(|error| cannot_listen(variable, address, &error))?)
            }
            (None, None) => None,
        };
        if let Some(listener) = listener {
            configure(&listener)?;
            listener.set_nonblocking(true)?;
            tracing::info!(name, address = %listener.local_addr()?, "listening");
            listeners.push(TcpListener::from_std(listener)?);
        }
    }
    Ok(listeners)
}

/// Sets the accept queue's length, also of an inherited socket, and the limits on unsent and unacknowledged data.
fn configure(listener: &std::net::TcpListener) -> io::Result<()> {
    let socket = SockRef::from(listener);
    // Accepted connections inherit them. `TCP_USER_TIMEOUT` is for sent data that stays unacknowledged, as by a client
    // that has lost power: the kernel's default is 15 minutes.
    #[cfg(target_os = "linux")]
    {
        socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
        socket.set_tcp_user_timeout(Some(UNCONFIRMED_TIMEOUT))?;
    }
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use std::{net::TcpStream, time::Duration};

    use super::*;

    #[test]
    fn a_burst_of_connections_waits_to_be_accepted() {
        const BURST: usize = 300;
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
        if most.ok().and_then(|most| most.trim().parse().ok()).is_none_or(|most: usize| most < BURST) {
            eprintln!("skipped: the accept queue of this system is too short");
            return;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        configure(&listener).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(20)).unwrap();
        // None is accepted meanwhile.
        let waiting: Vec<TcpStream> = (0..BURST).map(connect).collect();
        assert_eq!(waiting.len(), BURST);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_kernel_buffers_little_of_an_unread_answer() {
        use std::io::Write as _;

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        client.set_recv_buffer_size(4096).unwrap();
        configure(&listener).unwrap();
        client.connect(&listener.local_addr().unwrap().into()).unwrap();
        let (mut connection, _) = listener.accept().unwrap();
        assert_eq!(SockRef::from(&connection).tcp_user_timeout().unwrap(), Some(UNCONFIRMED_TIMEOUT));
        connection.set_nonblocking(true).unwrap();
        let (mut taken, answer) = (0, vec![0; 64 * 1024]);
        while let Ok(bytes) = connection.write(&answer) {
            taken += bytes;
        }
        assert!(taken < 2 * UNSENT_BYTES as usize, "{taken} bytes");
    }
}
