//! The consensus node's height, asked of its RPC again and again.

use std::time::Duration;

use mesh_chassis::Failure;
use reqwest::{Client, Url};
use serde::Deserialize;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};

/// Pause between two questions.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Longest time for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The node's own words: `GET /status`.
#[derive(Debug, Deserialize)]
struct Answer {
    result: Status,
}

#[derive(Debug, Deserialize)]
struct Status {
    sync_info: SyncInfo,
}

#[derive(Debug, Deserialize)]
struct SyncInfo {
    latest_block_height: String,
    catching_up: bool,
}

/// How the node was found, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Answers,
    CatchesUp,
    Silent,
}

/// Reads the address of a node's RPC.
pub(crate) fn address(text: &str) -> Result<Url, String> {
    let url: Url = text.parse().map_err(|error| format!("it is no URL: {error}"))?;
    match (url.scheme(), url.host()) {
        ("http", Some(_)) => Ok(url),
        _ => Err("write it as http://host:port".to_owned()),
    }
}

/// Follows the newest height of a node; none while it does not answer. Must be called inside an actix system.
pub(crate) fn follow(mut node: Url) -> Result<watch::Receiver<Option<u64>>, Failure> {
    let path = format!("{}/status", node.path().trim_end_matches('/'));
    node.set_path(&path);
    let client = Client::builder().timeout(ANSWER_WITHIN).no_proxy().build()?;
    let (height, receiver) = watch::channel(None);
    actix::spawn(async move {
        let mut condition = None;
        let mut turn = interval(ASK_EVERY);
        turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !height.is_closed() {
            turn.tick().await;
            let (seen, now) = match ask(&client, &node).await {
                Ok((seen, true)) => (Some(seen), Condition::CatchesUp),
                Ok((seen, false)) => (Some(seen), Condition::Answers),
                Err(error) => {
                    if condition != Some(Condition::Silent) {
                        tracing::warn!(error = error.as_ref(), "the consensus node does not answer");
                    }
                    (None, Condition::Silent)
                }
            };
            if condition.replace(now) != Some(now) && now != Condition::Silent {
                tracing::info!(height = seen, state = ?now, "the consensus node is there");
            }
            height.send_if_modified(|height| std::mem::replace(height, seen) != seen);
        }
    });
    Ok(receiver)
}

/// The newest height, and whether the node is still catching up with the others.
async fn ask(client: &Client, status: &Url) -> Result<(u64, bool), Failure> {
    let answer = client.get(status.clone()).send().await?.error_for_status()?;
    let Answer { result: Status { sync_info } } = answer.json().await?;
    Ok((sync_info.latest_block_height.parse()?, sync_info.catching_up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_http_address_is_taken() {
        for good in ["http://node:26657", "http://127.0.0.1:26657/", "http://node/rpc"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in ["node:26657", "https://node", "tcp://node:26657", "http://", ""] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
