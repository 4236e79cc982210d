//! TLS at the edge: protocols, clients that speak something else, certificates that change.

use std::{fs, time::Duration};

use mesh_testbed::{Authority, Database, EdgeTls, Mesh, TlsClient, certify, eventually};
use mesh_tests::{Call, Rpc, fixture};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    sync::OnceCell,
    time::{Instant, timeout},
};

const LIMITS: &str = "GET /limits HTTP/1.1\r\nHost: x\r\n";
/// Longer than the edge takes to notice other files, and to end a handshake.
const NOTICED: Duration = Duration::from_secs(20);

/// Sends a request on an open connection; returns the first bytes of its answer.
async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    stream.write_all(format!("{LIMITS}\r\n").as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = timeout(NOTICED, stream.read(&mut answer)).await.unwrap().unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

/// The certificate that the edge presents on a new connection.
async fn presented(tls: &EdgeTls) -> Option<Vec<u8>> {
    let stream = TlsClient::connect(tls.http, &tls.files.ca, &[]).await.ok()?;
    Some(stream.get_ref().1.peer_certificates()?.first()?.to_vec())
}

/// The shared mesh over the fixture whose edge has TLS.
pub(crate) async fn mesh() -> &'static Mesh {
    static SHARED: OnceCell<(Database, Mesh)> = OnceCell::const_new();
    let start = async || {
        let (database, mesh, _) = fixture::start(|setup| setup.without(&["export"]).tls()).await;
        (database, mesh)
    };
    &SHARED.get_or_init(start).await.1
}

#[tokio::test]
async fn http1_and_http2_and_grpc_are_chosen_by_alpn() {
    let mesh = mesh().await;
    let tls = mesh.tls();
    for (offered, chosen) in [
        (&[][..], None),
        (&[&b"http/1.1"[..]][..], Some(&b"http/1.1"[..])),
        (&[&b"h2"[..], &b"http/1.1"[..]][..], Some(&b"h2"[..])),
    ] {
        let mut stream = TlsClient::connect(tls.http, &tls.files.ca, offered).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), chosen);
        // A client that has agreed on HTTP/2 may not speak HTTP/1.1.
        let answer = exchange(&mut stream).await;
        assert_eq!(answer.starts_with("HTTP/1.1 200 OK\r\n"), chosen != Some(b"h2"), "{answer:?}");
        assert_eq!(answer.contains("HTTP/1.1"), chosen != Some(b"h2"), "{answer:?}");
    }
    let call = Call::from_path("/api/v2/markets").unwrap();
    Rpc::connect(mesh).await.call(&call).await.unwrap();
    let left = mesh.service("edge").metric("mesh_edge_tls_certificate_expiry_seconds").await;
    assert!(left > 3600.0, "{left} s");
}

#[tokio::test]
async fn clients_without_tls_and_slow_ones_are_closed() {
    let mesh = mesh().await;
    let mut plain = TcpStream::connect(mesh.tls().http).await.unwrap();
    plain.write_all(format!("{LIMITS}\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(NOTICED, plain.read_to_end(&mut answer)).await.expect("it stays open");
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
    // A byte now and then does not extend the handshake.
    let started = Instant::now();
    let (mut slow, mut to_slow) = TcpStream::connect(mesh.tls().http).await.unwrap().into_split();
    let trickle = tokio::spawn(async move {
        for byte in b"\x16\x03\x01\x02\x00\x01" {
            if to_slow.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    });
    let _ = timeout(NOTICED, slow.read_to_end(&mut answer)).await.expect("it stays open");
    assert!(started.elapsed() > Duration::from_secs(9), "after {:?}", started.elapsed());
    trickle.abort();
}

#[tokio::test]
async fn an_address_opens_no_more_connections_a_second_than_it_may_send_requests() {
    let database = Database::fresh().await;
    let limited =
        Mesh::configure(&database).env("MESH_EDGE_RATE_PER_S", "1").env("MESH_EDGE_RATE_BURST", "8");
    let mesh = limited.tls().start().await;
    let connect = async || TlsClient::connect(mesh.tls().http, &mesh.tls().files.ca, &[]).await;
    let mut open = connect().await.unwrap();
    let mut opened = 1;
    while connect().await.is_ok() {
        opened += 1;
        assert!(opened < 200, "none is refused");
    }
    assert!(exchange(&mut open).await.starts_with("HTTP/1.1 200"), "an open one is served");
    let refused = "mesh_edge_connections_refused_total{reason=\"rate\"}";
    mesh.service("edge").until_metric(refused, |value| value >= 1.0).await;
}

#[tokio::test]
async fn another_certificate_is_for_new_connections_and_a_faulty_one_for_none() {
    let database = Database::fresh().await;
    let mesh = Mesh::configure(&database).tls().start().await;
    let EdgeTls { http, files } = mesh.tls();
    let mut open = TlsClient::connect(*http, &files.ca, &[]).await.unwrap();
    assert!(exchange(&mut open).await.starts_with("HTTP/1.1 200"));
    let first = presented(mesh.tls()).await.unwrap();

    let good = fs::read(&files.key).unwrap();
    fs::write(&files.key, "no key").unwrap();
    let faulty = "mesh_edge_tls_certificate_faulty";
    mesh.service("edge").until_metric(faulty, |value| value == 1.0).await;
    assert_eq!(presented(mesh.tls()).await.as_ref(), Some(&first));
    fs::write(&files.key, good).unwrap();
    mesh.service("edge").until_metric(faulty, |value| value == 0.0).await;

    let folder = tempfile::tempdir().unwrap();
    let valid = [&files.certificate, &files.key].map(|file| (file, fs::read(file).unwrap()));
    for years in [2020..2025, 4000..4096] {
        let other = Authority::generate().certify_within(folder.path(), years.clone());
        fs::copy(&other.certificate, &files.certificate).unwrap();
        fs::copy(&other.key, &files.key).unwrap();
        mesh.service("edge").until_metric(faulty, |value| value == 1.0).await;
        assert_eq!(presented(mesh.tls()).await.as_ref(), Some(&first), "valid in {years:?}");
        valid.iter().for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
        mesh.service("edge").until_metric(faulty, |value| value == 0.0).await;
    }

    let second = certify(folder.path());
    for (from, to) in
        [(&second.ca, &files.ca), (&second.certificate, &files.certificate), (&second.key, &files.key)]
    {
        fs::copy(from, to).unwrap();
    }
    let is_presented = async || presented(mesh.tls()).await.is_some_and(|presented| presented != first);
    eventually(NOTICED, "the other certificate is not presented", is_presented).await;
    assert!(exchange(&mut open).await.starts_with("HTTP/1.1 200"), "the open connection was cut");
}
