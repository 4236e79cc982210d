//! The replies of a node (CometBFT's JSON-RPC), and the classification of its error texts (contract 5.3).

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// The JSON-RPC envelope of a reply.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<T> {
    pub(super) result: Option<T>,
    pub(super) error: Option<RpcError>,
}

/// A JSON-RPC error. CometBFT gives all errors the same number, so only the text is used.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct RpcError {
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: String,
}

/// The prefix of CometBFT's reason when a commit is refused, in lower case.
const COMMIT_PREFIX: &str = "error on broadcasttxcommit: ";

/// Beginnings of the errors of a full mempool. The second is from CometBFT 0.38 while it rechecks the mempool
/// after a block and does not know whether there is room.
const FULL_MEMPOOL: [&str; 2] = ["mempool is full", "mempool is still rechecking"];

/// Why a node refused a call, or a transaction without checking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The transaction is in the node's cache.
    InCache,
    /// Its mempool is full.
    Full,
    /// The transaction is too large for it.
    TooLarge,
    /// The node is catching up with the chain.
    CatchingUp,
    /// The transaction passed the check and was in no block so far.
    NoBlockYet,
    /// No block of the node has the transaction.
    NotFound,
    /// Any other reason: the node's text.
    Other(String),
}

impl RpcError {
    /// Classifies the error by its text (5.3).
    pub(super) fn classify(self) -> Refusal {
        let text = if self.data.is_empty() { self.message } else { self.data };
        let lower = text.to_ascii_lowercase();
        let lower = lower.strip_prefix(COMMIT_PREFIX).unwrap_or(&lower);
        if lower.contains("tx already exists in cache") {
            Refusal::InCache
        } else if FULL_MEMPOOL.iter().any(|start| lower.starts_with(start)) {
            Refusal::Full
        } else if lower.starts_with("tx too large") || lower.contains("request body too large") {
            Refusal::TooLarge
        } else if lower.contains("catching up") {
            Refusal::CatchingUp
        } else if lower.contains("timed out waiting for tx") {
            Refusal::NoBlockYet
        } else if lower.starts_with("tx (") && lower.ends_with("not found") {
            Refusal::NotFound
        } else {
            Refusal::Other(text)
        }
    }
}

/// The result of a check or an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TxResult {
    /// 0 = accepted.
    pub(crate) code: u32,
    /// Text; bytes that are not UTF-8 as hex.
    pub(crate) data: String,
    pub(crate) log: String,
}

/// The answer to `broadcast_tx_async` and `broadcast_tx_sync`.
#[derive(Debug, Deserialize)]
pub(super) struct BroadcastReply {
    #[serde(default)]
    code: u32,
    #[serde(default, deserialize_with = "text_or_null")]
    data: String,
    #[serde(default, deserialize_with = "text_or_null")]
    log: String,
}

impl BroadcastReply {
    pub(super) fn result(self) -> TxResult {
        let bytes = hex::decode(&self.data).unwrap_or_else(|_| self.data.into_bytes());
        TxResult { code: self.code, data: text(bytes), log: self.log }
    }
}

/// The application's result inside `broadcast_tx_commit`, `tx` and `check_tx`.
#[derive(Debug, Deserialize)]
pub(super) struct ExecTxResult {
    #[serde(default)]
    code: u32,
    #[serde(default, deserialize_with = "text_or_null")]
    data: String,
    #[serde(default, deserialize_with = "text_or_null")]
    log: String,
    #[serde(default, deserialize_with = "text_or_null")]
    info: String,
    #[serde(default, deserialize_with = "number_or_text")]
    gas_wanted: i64,
    #[serde(default, deserialize_with = "number_or_text")]
    gas_used: i64,
}

impl ExecTxResult {
    pub(super) fn result(self) -> TxResult {
        self.checked().result
    }

    pub(super) fn checked(self) -> CheckResult {
        let bytes = STANDARD.decode(&self.data).unwrap_or_else(|_| self.data.into_bytes());
        CheckResult {
            result: TxResult { code: self.code, data: text(bytes), log: self.log },
            info: self.info,
            gas_wanted: self.gas_wanted,
            gas_used: self.gas_used,
        }
    }
}

/// The result of a dry check.
#[derive(Debug, Clone)]
pub(crate) struct CheckResult {
    pub(crate) result: TxResult,
    pub(crate) info: String,
    pub(crate) gas_wanted: i64,
    pub(crate) gas_used: i64,
}

/// The answer to `broadcast_tx_commit`.
#[derive(Debug, Deserialize)]
pub(super) struct CommitReply {
    pub(super) check_tx: ExecTxResult,
    #[serde(alias = "deliver_tx")]
    pub(super) tx_result: ExecTxResult,
    #[serde(default, deserialize_with = "number_or_text")]
    pub(super) height: i64,
}

/// The answer to `tx`.
#[derive(Debug, Deserialize)]
pub(super) struct TxReply {
    #[serde(deserialize_with = "number_or_text")]
    pub(super) height: i64,
    pub(super) tx_result: ExecTxResult,
}

/// A transaction in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IncludedTx {
    pub(crate) height: i64,
    pub(crate) result: TxResult,
}

/// The fields of the answer to `status` that are used here.
#[derive(Debug, Deserialize)]
pub(super) struct StatusReply {
    pub(super) node_info: NodeInfo,
    pub(super) sync_info: SyncInfo,
}

#[derive(Debug, Deserialize)]
pub(super) struct NodeInfo {
    pub(super) network: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct SyncInfo {
    pub(super) catching_up: bool,
}

/// UTF-8 text as it is, anything else as hex (5.3).
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| hex::encode(error.as_bytes()))
}

/// A text that may be `null`.
fn text_or_null<'de, D: Deserializer<'de>>(json: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or_default())
}

/// A 64-bit number, as text or as number.
fn number_or_text<'de, D: Deserializer<'de>>(json: D) -> Result<i64, D::Error> {
    struct Number;
    impl Visitor<'_> for Number {
        type Value = i64;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a number")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<i64, E> {
            text.parse().map_err(E::custom)
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<i64, E> {
            Ok(number)
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<i64, E> {
            i64::try_from(number).map_err(E::custom)
        }

        fn visit_unit<E: Error>(self) -> Result<i64, E> {
            Ok(0)
        }
    }
    json.deserialize_any(Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(data: &str) -> Refusal {
        RpcError { message: "Internal error".to_owned(), data: data.to_owned() }.classify()
    }

    #[test]
    fn the_text_of_an_error_decides() {
        assert_eq!(meaning("tx already exists in cache"), Refusal::InCache);
        assert_eq!(meaning("Broadcast failed: Tx Already Exists In Cache"), Refusal::InCache);
        assert_eq!(meaning("mempool is full: number of txs 5000 (max: 5000)"), Refusal::Full);
        assert_eq!(
            meaning("mempool is still rechecking after a new committed block, so it is considered as full"),
            Refusal::Full
        );
        assert_eq!(meaning("error on broadcastTxCommit: mempool is full: number of txs 1"), Refusal::Full);
        assert_eq!(meaning("Tx too large. Max size is 1048576, but got 1048577"), Refusal::TooLarge);
        assert_eq!(meaning("error reading request body: http: request body too large"), Refusal::TooLarge);
        assert_eq!(meaning("endpoint is closed while node is catching up"), Refusal::CatchingUp);
        assert_eq!(meaning("timed out waiting for tx to be included in a block"), Refusal::NoBlockYet);
        assert_eq!(meaning("tx (AB) not found"), Refusal::NotFound);
        assert_eq!(meaning("not so: mempool is full"), Refusal::Other("not so: mempool is full".to_owned()));
        let bare = RpcError { message: "catching up".to_owned(), data: String::new() };
        assert_eq!(bare.classify(), Refusal::CatchingUp);
    }

    #[test]
    fn data_is_hex_at_the_top_and_base64_inside_and_shown_as_text_when_it_is_text() {
        let sync: BroadcastReply =
            serde_json::from_str(r#"{"code":51,"data":"6E6F","log":"","codespace":"","hash":"AB"}"#).unwrap();
        assert_eq!(sync.result().data, "no");
        let binary: BroadcastReply = serde_json::from_str(r#"{"data":"FF00","log":null}"#).unwrap();
        assert_eq!(binary.result().data, "ff00");
        let commit: CommitReply = serde_json::from_str(
            r#"{"check_tx":{"code":0,"data":null,"gas_wanted":"7"},"deliver_tx":{"code":1,"data":"bm8="},"height":"5"}"#,
        )
        .unwrap();
        assert_eq!(commit.height, 5);
        assert_eq!(commit.check_tx.checked().gas_wanted, 7);
        assert_eq!(
            commit.tx_result.result(),
            TxResult { code: 1, data: "no".to_owned(), log: String::new() }
        );
    }
}
