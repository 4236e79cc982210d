//! TLS: the certificate in force, which follows its files, and the handshakes.

use std::{
    io,
    ops::Range,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::RwLock;
use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::either::Either;
use x509_cert::{
    Certificate,
    der::Decode,
    time::{Time, Validity},
};

use crate::{file_follower::FileFollower, metrics::Metrics};

/// Longest time for a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// HTTP/2 in a handshake (ALPN).
const HTTP2: &[u8] = b"h2";

/// The files of a certificate, PEM.
#[derive(Debug, Clone)]
pub(crate) struct TlsFiles {
    /// The certificate and those that certify it, in this order.
    pub(crate) certificate: PathBuf,
    /// Its private key.
    pub(crate) key: PathBuf,
}

/// The bytes of the two files.
type Pair = [Vec<u8>; 2];

/// A certificate with its key, and when it is valid, seconds since the Unix epoch.
type Certified = (CertifiedKey, Range<i64>);

/// A connection with or without TLS.
pub(super) type Socket = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Takes connections with TLS.
#[derive(Clone)]
pub(crate) struct Tls(TlsAcceptor);

/// The certificate in force.
#[derive(Debug)]
struct InForce(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for InForce {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

impl Tls {
    /// Reads the files and follows them: a changed pair is for connections from then on.
    ///
    /// # Errors
    /// When the first pair is faulty.
    pub(crate) fn start(files: TlsFiles, metrics: Metrics) -> io::Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let certify = {
            let provider = Arc::clone(&provider);
            move |pair: &Pair| certify(pair, &provider)
        };
        let (follower, (certified, validity)) =
            FileFollower::start("certificate", move || files.read(), certify)?;
        let in_force = Arc::new(InForce(RwLock::new(Arc::new(certified))));
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let resolver = Arc::clone(&in_force) as Arc<dyn ResolvesServerCert>;
        let mut config = config.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        tokio::spawn(follow(follower, validity, in_force, metrics));
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Makes the handshake.
    ///
    /// # Errors
    /// When the client is too slow, or speaks something else.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<Socket> {
        let accepted = timeout(HANDSHAKE_TIMEOUT, self.0.accept(stream)).await;
        Ok(Either::Right(Box::new(accepted.map_err(|_| io::ErrorKind::TimedOut)??)))
    }
}

/// Whether the handshake ended with HTTP/2 as the protocol (RFC 9113, 3.2): the client may then speak no other.
pub(super) fn has_agreed_on_http2(socket: &Socket) -> bool {
    matches!(socket, Either::Right(stream) if stream.get_ref().1.alpn_protocol() == Some(HTTP2))
}

impl TlsFiles {
    fn read(&self) -> io::Result<Pair> {
        let read = |variable: &str, file: &PathBuf| {
            std::fs::read(file).map_err(|error| {
                io::Error::new(error.kind(), format!("{variable}: {}: {error}", file.display()))
            })
        };
        Ok([read("MESH_EDGE_TLS_CERT", &self.certificate)?, read("MESH_EDGE_TLS_KEY", &self.key)?])
    }
}

/// Puts each good pair in force, for as long as the process runs. A pair that is not valid now does not replace one that is;
/// it waits until it is valid, or the other one no more.
async fn follow(
    mut follower: FileFollower<Pair, Certified>,
    mut validity: Range<i64>,
    in_force: Arc<InForce>,
    metrics: Metrics,
) {
    let mut waiting = None;
    loop {
        let reading = follower.next().await;
        let is_new = reading.changed.is_some();
        waiting = reading.changed.or(waiting);
        let may_replace = |(_, new): &mut Certified| new.contains(&unix_s()) || !validity.contains(&unix_s());
        if let Some((certified, new)) = waiting.take_if(may_replace) {
            *in_force.0.write() = Arc::new(certified);
            validity = new;
            tracing::info!(valid_for_s = validity.end - unix_s(), "another certificate is in force");
        } else if is_new {
            tracing::warn!("the new certificate is not valid now; the one before stays in force");
        }
        metrics.show_certificate(validity.end - unix_s(), reading.is_faulty || waiting.is_some());
    }
}

/// The certificate of a pair, and when it is valid, seconds since the Unix epoch.
fn certify([certificates, key]: &Pair, provider: &CryptoProvider) -> io::Result<Certified> {
    let faulty = |what: &str, why: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {why}"))
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
    let chain = chain.map_err(|error| faulty("MESH_EDGE_TLS_CERT", &error))?;
    let leaf = chain.first().ok_or_else(|| faulty("MESH_EDGE_TLS_CERT", &"it has no certificate"))?;
    let parsed = Certificate::from_der(leaf).map_err(|error| faulty("MESH_EDGE_TLS_CERT", &error))?;
    let unix_s = |time: Time| time.to_unix_duration().as_secs().cast_signed();
    let Validity { not_before, not_after } = parsed.tbs_certificate.validity;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| faulty("MESH_EDGE_TLS_KEY", &error))?;
    let certified =
        CertifiedKey::from_der(chain, key, provider).map_err(|error| faulty("MESH_EDGE_TLS_KEY", &error))?;
    Ok((certified, unix_s(not_before)..unix_s(not_after)))
}

/// The time, seconds since the Unix epoch.
fn unix_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().cast_signed()
}
