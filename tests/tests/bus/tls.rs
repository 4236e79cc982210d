//! A bus with TLS. `MESH_TEST_NATS_TLS=1 cargo test -p mesh-tests` runs all other tests with TLS as well.

use mesh_testbed::{Mesh, Network};
use mesh_tests::MeshClient;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::bus::checks::{answers_everything, database, download};

#[tokio::test]
async fn a_mesh_works_over_tls_and_plain_connections_are_refused() {
    let (database, network) = (database().await, Network::with_tls().await);
    let bus = network.bus();
    assert!(bus.tls_ca.is_some());
    let mesh = Mesh::configure(&database).bus(&bus).start().await;
    answers_everything(&mesh).await;
    download(&MeshClient::new(&mesh)).await;

    let mut plain = TcpStream::connect(bus.url.trim_start_matches("nats://")).await.expect("the bus listens");
    plain.write_all(b"CONNECT {\"verbose\":false}\r\nPING\r\n").await.expect("it reads");
    let mut received = Vec::new();
    // The server closes the connection, maybe with a reset; only the bytes before that are checked.
    let _ = plain.read_to_end(&mut received).await;
    let received = String::from_utf8_lossy(&received);
    assert!(received.contains("\"tls_required\":true") && !received.contains("PONG"), "{received}");
}
