//! Plain connections that reach a server with TLS: a client that knows no TLS can talk to it byte by byte.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpSocket, TcpStream},
    time::{Duration, sleep},
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};

use crate::http1::Dial;

/// Fixed buffers of both connections, so that a slow client makes the server notice.
const BUFFER_BYTES: u32 = 64 << 10;
/// Connections that wait to be taken.
const BACKLOG: u32 = 4096;
/// The time until a connection is taken again after one could not be.
const RETRY: Duration = Duration::from_millis(50);

/// Accepts plain connections at the returned address and connects them by TLS to a server, whose certificate the
/// authority of a file certifies, from the addresses of its clients. Runs as long as the process: a mesh outlives the
/// runtime of the test that started it.
///
/// # Panics
/// When it cannot listen.
pub fn tls_tunnel(server: SocketAddr, ca: &Path) -> SocketAddr {
    let ca = ca.to_owned();
    let start = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _context = runtime.enter();
            let socket = TcpSocket::new_v4()?;
            socket.set_send_buffer_size(BUFFER_BYTES)?;
            socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
            socket.listen(BACKLOG)?
        };
        let address = listener.local_addr()?;
        std::thread::spawn(move || runtime.block_on(serve(listener, server, ca)));
        io::Result::Ok(address)
    };
    start().unwrap_or_else(|error| panic!("no tunnel for a test: {error}"))
}

/// Makes handshakes as a client.
#[derive(Clone)]
pub struct TlsClient(TlsConnector);

impl TlsClient {
    /// A client that trusts the authority of a file, and offers these protocols (ALPN).
    ///
    /// # Errors
    /// When the file has no certificate.
    pub fn trusting(ca: &Path, protocols: &[&[u8]]) -> io::Result<Self> {
        mesh_chassis::install_tls_provider();
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(ca).map_err(io::Error::other)?;
        roots.add(ca).map_err(io::Error::other)?;
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Connects to a server whose certificate the authority of a file certifies, offering these protocols.
    ///
    /// # Errors
    /// When the connection or the handshake fails.
    pub async fn connect(
        server: SocketAddr,
        ca: &Path,
        protocols: &[&[u8]],
    ) -> io::Result<TlsStream<TcpStream>> {
        Self::trusting(ca, protocols)?.over(Dial::default().connect(server).await?).await
    }

    /// Makes the handshake on an open connection.
    ///
    /// # Errors
    /// When it fails.
    pub async fn over(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let server = stream.peer_addr()?.ip();
        self.0.connect(ServerName::from(server), stream).await
    }
}

async fn serve(listener: TcpListener, server: SocketAddr, ca: PathBuf) {
    loop {
        let Ok((mut plain, client)) = listener.accept().await else {
            // Too many open files: some may be closed soon.
            sleep(RETRY).await;
            continue;
        };
        let ca = ca.clone();
        tokio::spawn(async move {
            let _ = plain.set_nodelay(true);
            let dial = Dial { source: Some(client.ip()), receive_buffer: Some(BUFFER_BYTES) };
            let mut secure = TlsClient::trusting(&ca, &[])?.over(dial.connect(server).await?).await?;
            copy_bidirectional(&mut plain, &mut secure).await
        });
    }
}
