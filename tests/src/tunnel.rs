//! A way to a server that a test can cut, freeze and mend.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpListener, TcpSocket, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

/// A way to a server. Dropping it cuts it.
#[derive(Debug)]
pub struct Tunnel {
    at: SocketAddr,
    url: String,
    server: String,
    frozen: watch::Sender<bool>,
    open: Mutex<Option<JoinHandle<()>>>,
    connections: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Tunnel {
    /// Opens a way to the server of a URL.
    pub async fn to(url: &str) -> Self {
        let tunnel = Self::cut_off(url).await;
        tunnel.mend();
        tunnel
    }

    /// Makes a way that is cut from the beginning: connections are refused.
    pub async fn cut_off(url: &str) -> Self {
        let server = host(url).to_owned();
        let at = listen(SocketAddr::from(([127, 0, 0, 1], 0)))
            .and_then(|listener| listener.local_addr())
            .unwrap_or_else(|error| panic!("no port for a tunnel: {error}"));
        let url = url.replace(&server, &at.to_string());
        let (frozen, _) = watch::channel(false);
        Self { at, url, server, frozen, open: Mutex::default(), connections: Arc::default() }
    }

    /// The URL with the tunnel's address in the place of the server's.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Another URL of the same server, such as that of another user, with the tunnel's address.
    pub fn instead_in(&self, url: &str) -> String {
        url.replace(&self.server, &self.at.to_string())
    }

    /// Breaks all connections and refuses new ones.
    pub fn cut(&self) {
        if let Some(open) = lock(&self.open).take() {
            open.abort();
        }
        lock(&self.connections).drain(..).for_each(|connection| connection.abort());
    }

    /// Lets connections be, and new ones be made, but carries nothing any more.
    pub fn freeze(&self) {
        self.frozen.send_replace(true);
    }

    /// Carries again.
    pub fn mend(&self) {
        self.frozen.send_replace(false);
        let mut open = lock(&self.open);
        if open.is_some() {
            return;
        }
        let listener = listen(self.at).unwrap_or_else(|error| panic!("the tunnel's port is taken: {error}"));
        let (server, frozen, connections) =
            (self.server.clone(), self.frozen.subscribe(), self.connections.clone());
        *open = Some(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let carrying = tokio::spawn(carry(stream, server.clone(), frozen.clone()));
                lock(&connections).push(carrying);
            }
        }));
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Carries one connection; picks up where it was when it is frozen and mended.
async fn carry(outside: TcpStream, server: String, mut frozen: watch::Receiver<bool>) {
    if frozen.wait_for(|frozen| !frozen).await.is_err() {
        return;
    }
    let Ok(inside) = TcpStream::connect(server).await else { return };
    let ((from_outside, to_outside), (from_inside, to_inside)) = (outside.into_split(), inside.into_split());
    let back = frozen.clone();
    // Either end hanging up ends both ways.
    tokio::select! {
        _ = pump(from_outside, to_inside, frozen) => {}
        _ = pump(from_inside, to_outside, back) => {}
    }
}

/// Moves bytes one way. Nothing is read while frozen, so nothing is lost.
async fn pump(from: OwnedReadHalf, mut to: OwnedWriteHalf, mut frozen: watch::Receiver<bool>) -> Option<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        frozen.wait_for(|frozen| !frozen).await.ok()?;
        from.readable().await.ok()?;
        if *frozen.borrow() {
            continue;
        }
        match from.try_read(&mut piece) {
            Ok(0) => return Some(()),
            Ok(length) => to.write_all(&piece[..length]).await.ok()?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(64)
}

/// Host and port of a URL.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
