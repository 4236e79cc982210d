//! TLS on a real bus: only certificates of the configured authority are accepted.

use std::time::Duration;

use mesh_bus::Bus;
use mesh_testbed::Network;
use tokio::time::timeout;

const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for many attempts of a client that is refused.
const ATTEMPTS_TIME: Duration = Duration::from_millis(600);

#[tokio::test]
async fn a_bus_with_a_certificate_of_another_authority_is_not_used() {
    let (network, other) = tokio::join!(Network::with_tls(), Network::with_tls());
    let right = network.bus().config("edge", "mesh").unwrap();
    let mut wrong = right.clone();
    wrong.tls_ca = other.bus().tls_ca;
    let mut without_authority = right.clone();
    // Without a configured authority, those of this machine are used.
    without_authority.tls_ca = None;
    let wrong = [Bus::connect(wrong).await.unwrap(), Bus::connect(without_authority).await.unwrap()];
    let right = Bus::connect(right).await.unwrap();
    timeout(TEST_TIMEOUT, right.until_connected()).await.unwrap();
    for bus in wrong {
        timeout(ATTEMPTS_TIME, bus.until_connected()).await.expect_err("it is connected");
    }
}

#[tokio::test]
async fn a_bus_without_a_certificate_is_not_used_when_one_is_required() {
    let network = Network::with_tls().await;
    let plain = mesh_testbed::nats().await.config("edge", "mesh");
    if plain.tls_ca.is_some() {
        // When all tests run over TLS, there is no plain server.
        return;
    }
    let mut demanding = plain.clone();
    demanding.tls_ca = network.bus().tls_ca;
    let demanding = Bus::connect(demanding).await.unwrap();
    let easy = Bus::connect(plain).await.unwrap();
    timeout(TEST_TIMEOUT, easy.until_connected()).await.unwrap();
    timeout(ATTEMPTS_TIME, demanding.until_connected()).await.expect_err("it is connected");
}
