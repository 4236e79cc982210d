//! TLS for the servers of one test process: certificates, a server that terminates TLS in front of another one, and
//! tunnels for clients without TLS.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use mesh_launcher::servers::TlsFiles;
use parking_lot::Mutex;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, Error, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tokio::{
    io::{AsyncWriteExt as _, copy, copy_bidirectional, split},
    net::{TcpListener, TcpSocket, TcpStream},
    time::sleep,
};
use tokio_rustls::{
    TlsAcceptor, TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore, ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    },
};
use tokio_util::io::InspectReader;

use crate::http1::Dial;

/// A certificate authority of one test process.
#[derive(Debug)]
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes one with a new key.
    pub fn generate() -> Self {
        Self::make().unwrap_or_else(|error| panic!("cannot make a certificate authority: {error}"))
    }

    fn make() -> Result<Self, Error> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        authority.distinguished_name.push(DnType::CommonName, "authority of a test");
        let key = KeyPair::generate()?;
        Ok(Self { certificate: authority.self_signed(&key)?.pem(), issuer: Issuer::new(authority, key) })
    }

    /// Makes a certificate for this machine, in a folder; it replaces an earlier one there.
    pub fn certify(&self, folder: &Path) -> TlsFiles {
        self.certify_within(folder, 1975..4096)
    }

    /// As [`Self::certify`], with the years at whose beginnings the certificate becomes valid and expires.
    pub fn certify_within(&self, folder: &Path, years: Range<i32>) -> TlsFiles {
        let made = self.certificate_and_key(years);
        let [certificate, key] =
            made.unwrap_or_else(|error| panic!("cannot make certificates for the tests: {error}"));
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&file, text))
                .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
            file
        };
        TlsFiles {
            certificate: write("certificate.pem", &certificate),
            key: write("key.pem", &key),
            ca: write("ca.pem", &self.certificate),
        }
    }

    fn certificate_and_key(&self, years: Range<i32>) -> Result<[String; 2], Error> {
        let mut machine = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        machine.distinguished_name.push(DnType::CommonName, "this machine");
        machine.not_before = date_time_ymd(years.start, 1, 1);
        machine.not_after = date_time_ymd(years.end, 1, 1);
        let key = KeyPair::generate()?;
        Ok([machine.signed_by(&key, &self.issuer)?.pem(), key.serialize_pem()])
    }
}

/// Makes a certificate authority and a certificate for this machine, in a folder.
pub fn certify(folder: &Path) -> TlsFiles {
    Authority::generate().certify(folder)
}

/// Terminates TLS in front of a server of this machine until the test ends, as an ingress or a provider of nodes does.
#[derive(Debug)]
pub struct TlsFront {
    /// The `host:port` for clients.
    pub address: String,
    /// The file with the authority that clients have to trust.
    pub ca: PathBuf,
    received: Arc<Mutex<Vec<u8>>>,
}

impl TlsFront {
    /// Terminates TLS in front of `http://host:port`, with a new certificate in a folder.
    pub async fn start(upstream: &str, folder: &Path) -> Self {
        mesh_chassis::install_tls_provider();
        let tls = certify(folder);
        let acceptor =
            acceptor(&tls.certificate, &tls.key).unwrap_or_else(|error| panic!("no TLS for a test: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port for a test: {error}"));
        let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
        let upstream = upstream.trim_start_matches("http://").to_owned();
        let received = Arc::default();
        let front = Self { address, ca: tls.ca, received: Arc::clone(&received) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // Fails for a client that does not trust the certificate.
                tokio::spawn(forward(acceptor.clone(), client, upstream.clone(), Arc::clone(&received)));
            }
        });
        front
    }

    /// All that clients have sent.
    pub fn received(&self) -> String {
        String::from_utf8_lossy(&self.received.lock()).into_owned()
    }
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, Box<dyn std::error::Error>> {
    let certificate = CertificateDer::from_pem_file(certificate)?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn forward(
    acceptor: TlsAcceptor,
    client: TcpStream,
    upstream: String,
    received: Arc<Mutex<Vec<u8>>>,
) -> io::Result<()> {
    let (from_client, mut to_client) = split(acceptor.accept(client).await?);
    let (mut from_server, mut to_server) = TcpStream::connect(upstream).await?.into_split();
    let mut from_client = InspectReader::new(from_client, |piece| received.lock().extend_from_slice(piece));
    let upwards = async {
        copy(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await
    };
    let downwards = async {
        copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::try_join!(upwards, downwards).map(|_| ())
}

/// Fixed buffers of both connections, so that a slow client makes the server notice.
const BUFFER_BYTES: u32 = 64 << 10;
/// Connections that wait to be taken.
const BACKLOG: u32 = 4096;
/// The time until a connection is taken again after one could not be.
const RETRY: Duration = Duration::from_millis(50);

/// Accepts plain connections at the returned address and connects them by TLS to a server, whose certificate the
/// authority of a file certifies, from the addresses of its clients. Runs as long as the process: a mesh outlives the
/// runtime of the test that started it.
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
        std::thread::spawn(move || runtime.block_on(serve_tunnels(listener, server, ca)));
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

async fn serve_tunnels(listener: TcpListener, server: SocketAddr, ca: PathBuf) {
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
