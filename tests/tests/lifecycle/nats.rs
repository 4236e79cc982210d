//! A plain client of the bus, as NATS tools are.

use std::{fs, time::Duration};

use async_nats::{Client, ConnectOptions, Message};
use futures_util::StreamExt;
use serde_json::Value;
use tokio::time::timeout;

/// Time limit for the first reply; on a busy machine it may be late.
const FIRST_REPLY_LIMIT: Duration = Duration::from_secs(10);

/// Time without a reply after which no more are expected.
const QUIET: Duration = Duration::from_millis(250);

/// Connects to the tests' bus as the operator.
pub(crate) async fn connect() -> Client {
    let bus = mesh_testbed::nats().await.bus();
    let mut options = ConnectOptions::new().custom_inbox_prefix("_INBOX_operator");
    if let Some(file) = bus.credentials_of("operator") {
        let text = fs::read_to_string(file).expect("the credentials are there");
        let (user, password) = text.trim().split_once(':').expect("user:password");
        options = options.user_and_password(user.to_owned(), password.to_owned());
    }
    if let Some(ca) = &bus.tls_ca {
        options = options.require_tls(true).add_root_certificates(ca.clone());
    }
    options.connect(&bus.url).await.expect("the bus accepts the operator")
}

/// Sends a request to a subject and collects replies until none arrives for [`QUIET`].
pub(crate) async fn replies(client: &Client, subject: &str, payload: &[u8]) -> Vec<Message> {
    let inbox = client.new_inbox();
    let mut received = client.subscribe(inbox.clone()).await.expect("the bus takes a subscription");
    let payload = payload.to_vec().into();
    client.publish_with_reply(subject.to_owned(), inbox, payload).await.expect("the bus takes a request");
    let (mut replies, mut limit) = (Vec::new(), FIRST_REPLY_LIMIT);
    while let Ok(Some(reply)) = timeout(limit, received.next()).await {
        replies.push(reply);
        limit = QUIET;
    }
    replies
}

/// Sends a request of the service convention; returns the replies as JSON.
pub(crate) async fn question(client: &Client, subject: &str) -> Vec<Value> {
    let replies = replies(client, subject, b"").await;
    replies.iter().map(|reply| serde_json::from_slice(&reply.payload).expect("the reply is JSON")).collect()
}
