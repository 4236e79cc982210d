//! More clients than there is room for.

use std::time::Duration;

use mesh_testbed::Mesh;
use mesh_tests::fixture;
use tokio::time::timeout;

use crate::{SOUND, answer, connect};

#[tokio::test]
async fn a_connection_too_many_waits_until_another_is_closed() {
    let database = fixture::database().await;
    let mesh = Mesh::configure(&database).env("MESH_EDGE_CONNECTIONS", "2").start().await;
    let mut served = Vec::new();
    for _ in 0..2 {
        let mut connection = connect(&mesh.url()).await;
        connection.send(SOUND.as_bytes()).await.expect("the edge reads");
        assert_eq!(answer(&mut connection).await.status, 200);
        served.push(connection);
    }
    let mut waiting = connect(&mesh.url()).await;
    waiting.send(SOUND.as_bytes()).await.expect("the system keeps it");
    let early = timeout(Duration::from_millis(300), waiting.answer(false)).await;
    assert!(early.is_err(), "{early:?}");
    served.pop();
    assert_eq!(answer(&mut waiting).await.status, 200);
}
