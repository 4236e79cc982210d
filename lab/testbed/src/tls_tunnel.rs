//! Plain connections that reach a server with TLS: a client that knows no TLS can talk to it byte by byte.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
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

/// Makes TLS connections to a server, from the addresses of its clients, for as long as the process runs: a mesh
/// outlives the runtime of the test that started it.
#[derive(Debug)]
pub struct TlsTunnel {
    /// Where plain connections are taken.
    pub address: SocketAddr,
}

impl TlsTunnel {
    /// Takes plain connections for a server, whose certificate the authority of a file certifies.
    pub fn start(server: SocketAddr, ca: &Path) -> Self {
        Self::run(server, ca.to_owned()).unwrap_or_else(|error| panic!("no tunnel for a test: {error}"))
    }

    fn run(server: SocketAddr, ca: PathBuf) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::spawn(move || runtime.block_on(serve(listener, server, ca)));
        Ok(Self { address })
    }

    /// Connects to a server by TLS, offering these protocols (ALPN).
    ///
    /// # Errors
    /// When the connection or the handshake fails.
    pub async fn connect(
        server: SocketAddr,
        ca: &Path,
        protocols: &[&[u8]],
    ) -> io::Result<TlsStream<TcpStream>> {
        Self::dial(Dial::default(), server, ca, protocols).await
    }

    async fn dial(
        dial: Dial,
        server: SocketAddr,
        ca: &Path,
        protocols: &[&[u8]],
    ) -> io::Result<TlsStream<TcpStream>> {
        mesh_chassis::install_tls_provider();
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(ca).map_err(io::Error::other)?;
        roots.add(ca).map_err(io::Error::other)?;
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let stream = dial.connect(server).await?;
        TlsConnector::from(Arc::new(config)).connect(ServerName::from(server.ip()), stream).await
    }
}

async fn serve(listener: std::net::TcpListener, server: SocketAddr, ca: PathBuf) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (mut plain, client) = listener.accept().await?;
        let ca = ca.clone();
        tokio::spawn(async move {
            let _ = plain.set_nodelay(true);
            let dial = Dial { source: Some(client.ip()), ..Dial::default() };
            let mut secure = TlsTunnel::dial(dial, server, &ca, &[]).await?;
            copy_bidirectional(&mut plain, &mut secure).await
        });
    }
}
