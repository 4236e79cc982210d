//! The replies of a node (CometBFT's JSON-RPC).

use std::collections::HashSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh_transaction::TxHash;
use proto_msgs::v2::{CheckTransactionReply, SubmitTransactionReply};
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny},
};
use serde_json::Value;

/// The result of a check or an execution; read of the answer to `broadcast_tx_async` and `broadcast_tx_sync`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BroadcastReply")]
pub(crate) struct TxResult {
    /// 0 = accepted.
    pub(crate) code: u32,
    /// Text; bytes that are not UTF-8 as hex.
    pub(crate) data: String,
    pub(crate) log: String,
}

#[derive(Deserialize)]
struct BroadcastReply {
    code: Option<u32>,
    hash: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "text_or_null")]
    data: String,
    #[serde(default, deserialize_with = "text_or_null")]
    log: String,
}

impl TryFrom<BroadcastReply> for TxResult {
    type Error = &'static str;

    /// A result with neither a code nor a hash is of another call, and says nothing of the transaction.
    fn try_from(reply: BroadcastReply) -> Result<Self, Self::Error> {
        let BroadcastReply { code, hash, data, log } = reply;
        if code.is_none() && hash.is_none() {
            return Err("no answer to a broadcast");
        }
        let bytes = hex::decode(&data).unwrap_or_else(|_| data.into_bytes());
        Ok(Self { code: code.unwrap_or_default(), data: text(bytes), log })
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
        let CheckTransactionReply { code, data, log, .. } = self.checked();
        TxResult { code, data, log }
    }

    pub(super) fn checked(self) -> CheckTransactionReply {
        let Self { code, data, log, info, gas_wanted, gas_used } = self;
        let data = text(STANDARD.decode(&data).unwrap_or_else(|_| data.into_bytes()));
        CheckTransactionReply { success: code == 0, code, gas_wanted, gas_used, data, log, info }
    }
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

/// The answer to `unconfirmed_txs`.
#[derive(Debug, Deserialize)]
pub(super) struct UnconfirmedTxsReply {
    /// `null` when there are none.
    txs: Option<Vec<String>>,
}

impl UnconfirmedTxsReply {
    pub(super) fn hashes(self) -> HashSet<TxHash> {
        let encoded = self.txs.unwrap_or_default();
        encoded.iter().filter_map(|tx| STANDARD.decode(tx).ok()).map(|tx| TxHash::of(&tx)).collect()
    }
}

/// A transaction in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IncludedTx {
    pub(crate) height: i64,
    pub(crate) result: TxResult,
}

impl IncludedTx {
    /// The reply to a submission of the transaction, which has this hash.
    pub(crate) fn reply(self, hash: &TxHash) -> SubmitTransactionReply {
        let Self { height, result: TxResult { code, data, log } } = self;
        let success = code == 0;
        let tx_hash = if success { hash.to_string() } else { String::new() };
        SubmitTransactionReply { success, tx_hash, code, data, log, height }
    }
}

/// UTF-8 text as it is, anything else as hex (5.3).
pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| hex::encode(error.as_bytes()))
}

/// A text that may be `null`.
fn text_or_null<'de, D: Deserializer<'de>>(json: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or_default())
}

/// A 64-bit number, as text or as number.
fn number_or_text<'de, D: Deserializer<'de>>(json: D) -> Result<i64, D::Error> {
    match Value::deserialize(json)? {
        Value::Null => Ok(0),
        Value::String(text) => text.parse().map_err(D::Error::custom),
        number => number.as_i64().ok_or_else(|| D::Error::custom("not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_hex_at_the_top_and_base64_inside_and_shown_as_text_when_it_is_text() {
        let sync: TxResult =
            serde_json::from_str(r#"{"code":51,"data":"6E6F","log":"","codespace":"","hash":"AB"}"#).unwrap();
        assert_eq!(sync.data, "no");
        let binary: TxResult = serde_json::from_str(r#"{"data":"FF00","log":null,"hash":"AB"}"#).unwrap();
        assert_eq!(binary.data, "ff00");
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
