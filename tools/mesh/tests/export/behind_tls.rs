//! A gateway behind TLS, as an ingress makes one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use mesh_testbed::certify;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};

/// Terminates TLS in front of a gateway, until the test ends. Returns the address for clients, and the file
/// with the authority that they have to trust.
pub(crate) async fn behind_tls(gateway: &str, folder: &Path) -> (String, PathBuf) {
    mesh_chassis::install_tls_provider();
    let tls = certify(folder);
    let certificate = CertificateDer::from_pem_file(&tls.certificate).unwrap();
    let key = PrivateKeyDer::from_pem_file(&tls.key).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gateway = gateway.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (acceptor, gateway) = (acceptor.clone(), gateway.clone());
            tokio::spawn(async move {
                // Fails for a client that does not trust the certificate.
                let mut client = acceptor.accept(client).await.ok()?;
                let mut server = TcpStream::connect(gateway).await.ok()?;
                copy_bidirectional(&mut client, &mut server).await.ok()
            });
        }
    });
    (format!("https://{address}"), tls.ca)
}
