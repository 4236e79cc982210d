//! TLS in front of a server of this machine, as an ingress or a provider of nodes has it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncWriteExt as _, copy, split},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};
use tokio_util::io::InspectReader;

use crate::certify;

/// Terminates TLS until the test ends.
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
) -> std::io::Result<()> {
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
