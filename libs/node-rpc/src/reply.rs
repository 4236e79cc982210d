//! Replies of nodes, and answers of other servers in their place.

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Why a reply has no result.
#[derive(Debug)]
pub enum ReplyError {
    /// The node answered with an error: its text.
    Refused(String),
    /// The body is not a reply of a node, for this reason.
    Foreign(String),
}

/// The JSON-RPC envelope of a reply.
#[derive(Deserialize)]
struct Reply<'a, T> {
    result: Option<T>,
    #[serde(borrow)]
    error: Option<RpcError<'a>>,
}

/// An error, not parsed: as values, a reply of numbers takes sixteen times its length.
#[derive(Deserialize)]
struct RpcError<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// Most characters of an error that is no text.
const MAX_SHOWN: usize = 1000;

/// Reads the result of a reply. A node sends errors in the body, with any HTTP status, so the body alone decides.
///
/// # Errors
/// The reply is an error, or is not that of a node.
pub fn read_reply<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ReplyError> {
    match serde_json::from_slice(body) {
        Ok(Reply { error: Some(error), .. }) => Err(ReplyError::Refused(error.text())),
        Ok(Reply { result: Some(result), error: None }) => Ok(result),
        Ok(Reply { result: None, error: None }) => Err(ReplyError::Foreign("it has no result".to_owned())),
        Err(error) => Err(ReplyError::Foreign(error.to_string())),
    }
}

impl RpcError<'_> {
    /// The text of `data`, or of `message` when `data` is no text.
    fn text(&self) -> String {
        let text = |value: Option<&RawValue>| serde_json::from_str::<String>(value?.get()).ok();
        text(self.data).filter(|data| !data.is_empty()).or_else(|| text(self.message)).unwrap_or_else(|| {
            let [message, data] = [self.message, self.data].map(|value| value.map_or("null", RawValue::get));
            message.chars().take(MAX_SHOWN).chain([' ']).chain(data.chars().take(MAX_SHOWN)).collect()
        })
    }
}

/// The result of `status`, as far as it is read.
#[derive(Debug, Deserialize)]
pub struct Status {
    /// The node.
    pub node_info: NodeInfo,
    /// Its blocks.
    pub sync_info: SyncInfo,
}

/// A node of a [`Status`].
#[derive(Debug, Deserialize)]
pub struct NodeInfo {
    /// The id of its chain.
    pub network: String,
}

/// The blocks of a node of a [`Status`]. Heights are `None` if they are absent or no numbers.
#[derive(Debug, Deserialize)]
pub struct SyncInfo {
    /// The height of the newest block; 0 before the first.
    #[serde(default, deserialize_with = "height")]
    pub latest_block_height: Option<u64>,
    /// The hash of the newest block, hex.
    pub latest_block_hash: Option<String>,
    /// The height of the oldest block. Absent in replies of some proxies.
    #[serde(default, deserialize_with = "height")]
    pub earliest_block_height: Option<u64>,
    /// Whether the node lacks blocks of the chain.
    #[serde(default)]
    pub catching_up: bool,
}

fn height<'de, D: Deserializer<'de>>(json: D) -> Result<Option<u64>, D::Error> {
    let text = serde_json::from_str::<String>(Box::<RawValue>::deserialize(json)?.get());
    Ok(text.ok().and_then(|text| text.parse().ok()))
}

/// Describes an answer that is not that of a consensus node, as the end of a sentence about the node.
pub fn foreign_answer(status: StatusCode) -> String {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            format!("refuses the credentials of MESH_NODE_URL: HTTP {status}")
        }
        _ => format!("gives no answer of a consensus node: HTTP {status}"),
    }
}

/// The seconds of a `Retry-After`, which may be a date; at least one.
pub fn retry_after(headers: &HeaderMap) -> Option<u32> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = value.parse::<u32>().ok().or_else(|| {
        let until = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
        u32::try_from(until.as_second() - jiff::Timestamp::now().as_second()).ok()
    });
    seconds.map(|seconds| seconds.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_the_message_when_data_is_none() {
        for error in [
            r#"{"message":"mempool is full"}"#,
            r#"{"message":"mempool is full","data":null}"#,
            r#"{"message":"mempool is full","data":""}"#,
            r#"{"message":"mempool is full","data":{"a":1}}"#,
        ] {
            let error: RpcError = serde_json::from_str(error).unwrap();
            assert_eq!(error.text(), "mempool is full");
        }
        let other: RpcError = serde_json::from_str(r#"{"message":7,"code":-32603}"#).unwrap();
        assert_eq!(other.text(), "7 null");
        let long = format!(r#"{{"data":[{}0]}}"#, "0,".repeat(5000));
        assert_eq!(serde_json::from_str::<RpcError>(&long).unwrap().text().len(), "null ".len() + MAX_SHOWN);
    }

    #[test]
    fn a_time_to_try_again_may_be_a_date() {
        let seconds =
            |value: &str| retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]));
        assert_eq!((seconds("12"), seconds("0"), seconds("soon")), (Some(12), Some(1), None));
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(90);
        let date = soon.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        assert!(seconds(&date).is_some_and(|seconds| (88..=90).contains(&seconds)), "{date}");
        assert_eq!(seconds("Wed, 21 Oct 2015 07:28:00 GMT"), None);
    }
}
