//! Decoders of users: services on the bus (N6).

use std::io::Read;

use async_nats::HeaderMap;
use flate2::read::GzDecoder;
use futures_util::StreamExt;
use mesh_testbed::{
    Database, NatsServer, nats,
    scripted_node::{Chain, Version, event},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{SOON, configure, stored, text};

/// A decoder whose reply is what this function returns for a block: rows, or an error.
async fn decode(
    server: &NatsServer,
    prefix: &str,
    reply: impl Fn(&Value) -> Result<Value, String> + Send + 'static,
) {
    let variables = server.bus().variables("decoder");
    let value =
        |name: &str| variables.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
    let credentials = std::fs::read_to_string(value("MESH_BUS_CREDENTIALS").unwrap()).unwrap();
    let (user, password) = credentials.trim().split_once(':').unwrap();
    let options = async_nats::ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned());
    let client = options.connect(value("MESH_BUS_URL").unwrap()).await.unwrap();
    let subject = format!("{prefix}.decode.Block");
    let mut requests = client.queue_subscribe(subject, "q".to_owned()).await.unwrap();
    client.flush().await.unwrap();
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let mut plain = String::new();
            GzDecoder::new(&request.payload[..]).read_to_string(&mut plain).unwrap();
            let subject = request.reply.unwrap();
            match reply(&serde_json::from_str(&plain).unwrap()) {
                Ok(rows) => client.publish(subject, json!({"rows": rows}).to_string().into()).await.unwrap(),
                Err(text) => {
                    let mut headers = HeaderMap::new();
                    headers.insert("Nats-Service-Error-Code", "500");
                    headers.insert("Nats-Service-Error", text.as_str());
                    client.publish_with_headers(subject, headers, "".into()).await.unwrap();
                }
            }
        }
    });
}

#[tokio::test]
async fn a_service_on_the_bus_decodes_and_its_error_halts() {
    let (database, chain) = (Database::fresh().await, Chain::start(Version::V038).await);
    let server = nats().await;
    chain.add(vec![event("dex.fill", &[("price", "7")])]);
    let prefix = format!("decoders{}", std::process::id());
    let service = configure(&database, &chain)
        .env("MESH_BUS_PREFIX", &prefix)
        .env("MESH_INGEST_DECODER", "nats")
        .start_unready()
        .await;
    let unready = service.await_readiness(503, SOON).await;
    assert!(!unready.contains("halted"), "a decoder that is not there is waited for: {unready}");
    static FAILS: Mutex<bool> = Mutex::new(false);
    decode(server, &prefix, |request| {
        if *FAILS.lock() && request["height"] == 2 {
            return Err("fills without a price".to_owned());
        }
        let value = &request["results"]["finalize_block_events"][0]["attributes"][0]["value"];
        assert_eq!(request["block"]["block"]["header"]["time"], request["time"]);
        assert_eq!(request["chainId"], "net-1");
        Ok(json!([{"table": "network_parameters", "values": {"key": "price", "value": value, "tx_hash": null}}]))
    })
    .await;
    let client = database.connect().await;
    stored(&client, 1).await;
    assert_eq!(text(&client, "SELECT value FROM network_parameters").await, "7");
    service.await_readiness(200, SOON).await;
    *FAILS.lock() = true;
    chain.add(vec![event("dex.fill", &[("price", "8")])]);
    let unready = service.await_readiness(503, SOON).await;
    assert!(
        unready.contains("halted at block 2: decode: the decoder failed: 500 fills without"),
        "{unready}"
    );
    *FAILS.lock() = false;
    stored(&client, 2).await;
}
