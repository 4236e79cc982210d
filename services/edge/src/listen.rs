//! The listening sockets: inherited from whoever started us (so that replicas share them and a restart loses
//! no connection), else bound here.

use std::io;

use listenfd::ListenFd;
use tokio::net::TcpListener;

use crate::config::Config;

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
            listener.set_nonblocking(true)?;
            tracing::info!(name, address = %listener.local_addr()?, "listening");
            listeners.push(TcpListener::from_std(listener)?);
        }
    }
    Ok(listeners)
}
