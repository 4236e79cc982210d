//! `mesh decoder`: a decoder on the bus as users write one, with the rows of the built-in one.

use std::{io::Read as _, time::Duration};

use async_nats::{HeaderMap, Message};
use flate2::read::GzDecoder;
use futures_util::StreamExt as _;
use mesh::failure::{Failure, cannot};
use mesh_ingest::{Decoder, EVENT_PREFIX, FetchedBlock, StatedRow};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

/// The subject on which blocks come, and the group that shares them.
const SUBJECT: &str = "mesh.decode.Block";
const GROUP: &str = "q";
/// Pause before the bus is tried again.
const RETRY: Duration = Duration::from_millis(200);

#[derive(Deserialize)]
struct Request {
    block: Box<RawValue>,
    results: Box<RawValue>,
}

/// Answers until it is killed.
///
/// # Errors
/// The bus is not configured.
pub(crate) async fn run() -> Result<(), Failure> {
    let variable = |name: &str| std::env::var(name).map_err(|error| cannot(&format!("read {name}"), &error));
    let credentials = std::fs::read_to_string(variable("MESH_BUS_CREDENTIALS")?);
    let credentials = credentials.map_err(|error| cannot("read the credentials", &error))?;
    let (user, password) = credentials.trim().split_once(':').unwrap_or_default();
    let options = async_nats::ConnectOptions::with_user_and_password(user.into(), password.into());
    let options = options.reconnect_delay_callback(|_| RETRY).retry_on_initial_connect();
    let client = options.connect(&variable("MESH_BUS_URL")?).await;
    let client = client.map_err(|error| cannot("connect to the bus", &error))?;
    let subscribed = client.queue_subscribe(SUBJECT, GROUP.to_owned()).await;
    let mut requests = subscribed.map_err(|error| cannot("subscribe", &error))?;
    let decoder = Decoder::Events(EVENT_PREFIX.to_owned());
    while let Some(Message { payload, reply: Some(reply), .. }) = requests.next().await {
        // A reply that is lost with the bus is requested again.
        let _ = match decode(&decoder, &payload).await {
            Ok(rows) => client.publish(reply, json!({ "rows": rows }).to_string().into()).await,
            Err(failure) => {
                let mut headers = HeaderMap::new();
                headers.insert("Nats-Service-Error-Code", "500");
                headers.insert("Nats-Service-Error", failure.to_string().replace('\n', " "));
                client.publish_with_headers(reply, headers, "".into()).await
            }
        };
    }
    Err(Failure::failed("the subscription has ended"))
}

async fn decode(decoder: &Decoder, payload: &[u8]) -> Result<Vec<StatedRow>, Failure> {
    let mut plain = Vec::new();
    GzDecoder::new(payload).read_to_end(&mut plain).map_err(|error| cannot("unpack the block", &error))?;
    let request = serde_json::from_slice(&plain).map_err(|error| cannot("read the request", &error))?;
    let Request { block, results } = request;
    let block = FetchedBlock::read(block, results).map_err(|error| cannot("read the block", &error))?;
    let rows = decoder.decode(&block).await.map_err(|error| cannot("decode the block", &error))?;
    Ok(rows.iter().map(StatedRow::of).collect())
}
