//! Answers in the shapes and encodings of CometBFT 0.38: hashes upper-case hex, heights and gas as text,
//! `data` hex at the top of a broadcast's answer and base64 elsewhere.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use jiff::Timestamp;
use mesh_transaction::{Block, Refusal, TxHash};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tendermint_proto::v0_38::abci::{ExecTxResult, ResponseFinalizeBlock};

use crate::{application::Delivered, stored::StoredBlock};

/// The CometBFT release whose answers these imitate.
const VERSION: &str = "0.38.19";
const BLOCK_PROTOCOL: &str = "11";
/// SHA-256 of nothing: the hash of an empty list.
const EMPTY: &str = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855";

/// `broadcast_tx_async` and `broadcast_tx_sync`.
pub(crate) fn broadcast(hash: &TxHash, refusal: Option<&Refusal>) -> Value {
    let (code, data) =
        refusal.map_or((0, String::new()), |refusal| (refusal.code, hex::encode_upper(&refusal.reason)));
    json!({"code": code, "data": data, "log": "", "codespace": "", "hash": hash.to_string()})
}

/// `broadcast_tx_commit`.
pub(crate) fn commit(hash: &TxHash, outcome: &Result<Delivered, Refusal>) -> Value {
    let succeeded = ExecTxResult::default;
    let (check_tx, tx_result, height) = match outcome {
        Ok(delivered) => (succeeded(), delivered.result.clone(), delivered.height),
        Err(refusal) => (refused(refusal), succeeded(), 0),
    };
    let (check_tx, tx_result) = (result(&check_tx), result(&tx_result));
    json!({
        "check_tx": check_tx,
        "tx_result": tx_result,
        "hash": hash.to_string(),
        "height": height.to_string(),
    })
}

/// `check_tx`.
pub(crate) fn checked(refusal: Option<&Refusal>) -> Value {
    result(&refusal.map(refused).unwrap_or_default())
}

/// The result of a transaction that is refused.
pub(crate) fn refused(refusal: &Refusal) -> ExecTxResult {
    let data = refusal.reason.clone().into();
    ExecTxResult { code: refusal.code, data, ..ExecTxResult::default() }
}

/// The result of a check or an execution inside other answers.
fn result(result: &ExecTxResult) -> Value {
    let data = (!result.data.is_empty()).then(|| STANDARD.encode(&result.data));
    json!({
        "code": result.code,
        "data": data,
        "log": result.log,
        "info": "",
        "gas_wanted": "0",
        "gas_used": "0",
        "events": result.events,
        "codespace": "",
    })
}

/// `tx`.
pub(crate) fn tx(hash: &TxHash, delivered: &Delivered) -> Value {
    json!({
        "hash": hash.to_string(),
        "height": delivered.height.to_string(),
        "index": delivered.index,
        "tx_result": result(&delivered.result),
        "tx": STANDARD.encode(&delivered.tx),
    })
}

/// `unconfirmed_txs`; without transactions `num_unconfirmed_txs`.
pub(crate) fn waiting(total: usize, bytes: usize, txs: Option<&[Bytes]>) -> Value {
    let shown = txs.map(|txs| txs.iter().map(|tx| STANDARD.encode(tx)).collect::<Vec<_>>());
    json!({
        "n_txs": txs.map_or(total, <[Bytes]>::len).to_string(),
        "total": total.to_string(),
        "total_bytes": bytes.to_string(),
        "txs": shown,
    })
}

/// `status`.
pub(crate) fn status(
    chain_id: &str,
    address: &str,
    oldest: Option<&Block>,
    newest: Option<&Block>,
    catching_up: bool,
) -> Value {
    let of = |block: Option<&Block>| {
        let hash = block.map_or_else(String::new, |block| block.hash.to_ascii_uppercase());
        let height = block.map_or(0, |block| block.height).to_string();
        (hash, height, time(block))
    };
    let (latest_hash, latest_height, latest_time) = of(newest);
    let (earliest_hash, earliest_height, earliest_time) = of(oldest);
    json!({
        "node_info": {
            "protocol_version": {"p2p": "8", "block": BLOCK_PROTOCOL, "app": "0"},
            "id": id_in(chain_id, "node").to_lowercase(),
            "listen_addr": "tcp://127.0.0.1:0",
            "network": chain_id,
            "version": VERSION,
            "channels": "",
            "moniker": "development node",
            "other": {"tx_index": "on", "rpc_address": format!("tcp://{address}")},
        },
        "sync_info": {
            "latest_block_hash": latest_hash,
            "latest_app_hash": "",
            "latest_block_height": latest_height,
            "latest_block_time": latest_time,
            "earliest_block_hash": earliest_hash,
            "earliest_app_hash": "",
            "earliest_block_height": earliest_height,
            "earliest_block_time": earliest_time,
            "catching_up": catching_up,
        },
        "validator_info": {
            "address": id_in(chain_id, "validator"),
            "pub_key": {"type": "tendermint/PubKeyEd25519", "value": STANDARD.encode(Sha256::digest(chain_id))},
            "voting_power": "10",
        },
    })
}

/// `block`.
pub(crate) fn block(chain_id: &str, stored: &StoredBlock) -> Value {
    let txs: Vec<String> = stored.txs.iter().map(|tx| STANDARD.encode(&tx.tx)).collect();
    json!({
        "block_id": id_of(&stored.hash),
        "block": {
            "header": header(chain_id, stored),
            "data": {"txs": txs},
            "evidence": {"evidence": []},
            "last_commit": {
                "height": stored.height.saturating_sub(1).to_string(),
                "round": 0,
                "block_id": id_of(&stored.previous_hash),
                "signatures": [],
            },
        },
    })
}

/// `block_results`: empty lists are null, as a consensus node has them.
pub(crate) fn block_results(height: u64, response: &ResponseFinalizeBlock) -> Value {
    let ResponseFinalizeBlock { tx_results, events, .. } = response;
    let results: Vec<Value> = tx_results.iter().map(result).collect();
    json!({
        "height": height.to_string(),
        "txs_results": (!results.is_empty()).then_some(results),
        "finalize_block_events": (!events.is_empty()).then_some(events),
        "validator_updates": null,
        "consensus_param_updates": null,
        "app_hash": "",
    })
}

/// The event for subscribers of `tm.event='NewBlockHeader'`.
pub(crate) fn new_block_header(chain_id: &str, stored: &StoredBlock) -> Value {
    json!({"type": "tendermint/event/NewBlockHeader", "value": {"header": header(chain_id, stored)}})
}

/// The header inside `block` and inside the events.
fn header(chain_id: &str, stored: &StoredBlock) -> Value {
    // A hash over the transactions' hashes, not a Merkle root as in CometBFT; equal when there are none.
    let hashes = stored.txs.iter().fold(Sha256::new(), |all, tx| all.chain_update(Sha256::digest(&tx.tx)));
    let data_hash = hex::encode_upper(hashes.finalize());
    json!({
        "version": {"block": BLOCK_PROTOCOL},
        "chain_id": chain_id,
        "height": stored.height.to_string(),
        "time": time(Some(&stored.block())),
        "last_block_id": id_of(&stored.previous_hash),
        "last_commit_hash": EMPTY,
        "data_hash": data_hash,
        "validators_hash": EMPTY,
        "next_validators_hash": EMPTY,
        "consensus_hash": EMPTY,
        "app_hash": "",
        "last_results_hash": EMPTY,
        "evidence_hash": EMPTY,
        "proposer_address": id_in(chain_id, "validator"),
    })
}

fn id_of(hash: &str) -> Value {
    let hash = hash.to_ascii_uppercase();
    json!({"hash": hash, "parts": {"total": u32::from(!hash.is_empty()), "hash": hash}})
}

/// The time of a block in RFC 3339, UTC, with nanoseconds unless they are zero; 1970 without a block.
fn time(block: Option<&Block>) -> String {
    let nanoseconds = block.map_or(0, |block| block.time.as_nanos());
    let time = i128::try_from(nanoseconds).ok().and_then(|time| Timestamp::from_nanosecond(time).ok());
    time.unwrap_or_default().to_string()
}

/// An id derived from the chain's id: 20 bytes as upper-case hex.
fn id_in(chain_id: &str, what: &str) -> String {
    hex::encode_upper(&Sha256::digest(format!("{what} of {chain_id}"))[..20])
}
