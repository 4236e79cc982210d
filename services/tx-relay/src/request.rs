//! The checks of a transaction before the node gets it (contract 5.2). All mistakes are reported together.

use bytes::Bytes;
use mesh_problem::{Code, Detail, MALFORMED, NOT_MAPPED, Problem};
use prost::Message;
use proto_msgs::v2::{SubmissionType, Transaction, TxVersion, transaction::From};

use crate::{
    config::{Rules, Signatures},
    node::{CallError, Nodes},
    result_cache::Finality,
};

/// The consensus engine's default limit for one transaction.
const MAX_TX_BYTES: usize = 1 << 20;

/// Most characters of an invalid value that a problem repeats.
const MAX_INNER_CHARS: usize = 200;

/// Checks a transaction and encodes it, fields in ascending number, so that its hash is the same everywhere.
pub(crate) fn check_and_encode(tx: Option<Transaction>) -> Result<Bytes, Problem> {
    let Some(tx) = tx else { return Err(invalid(vec![detail("tx", "is missing", "")])) };
    let mut details = Vec::new();
    if !matches!(tx.version(), TxVersion::V2 | TxVersion::V3) {
        details.push(detail("tx.version", "must be TX_VERSION_V2 or TX_VERSION_V3", &tx.version.to_string()));
    }
    match &tx.from {
        Some(From::PubKey(key)) if is_hex(key, 64) => {}
        Some(From::PubKey(key)) => details.push(detail("tx.pubKey", "must be 64 hex digits", key)),
        Some(From::Address(address)) => {
            details.push(detail("tx.address", "is not supported, give tx.pubKey", address));
        }
        None => details.push(detail("tx.pubKey", "is missing", "")),
    }
    if tx.input_data.is_empty() {
        details.push(detail("tx.inputData", "is missing", ""));
    }
    match &tx.signature {
        None => details.push(detail("tx.signature", "is missing", "")),
        Some(signature) => {
            if !is_hex(&signature.value, 128) {
                details.push(detail("tx.signature.value", "must be 128 hex digits", &signature.value));
            }
            if signature.algo.is_empty() {
                details.push(detail("tx.signature.algo", "is missing", ""));
            }
            if signature.version == 0 {
                details.push(detail("tx.signature.version", "must be at least 1", "0"));
            }
        }
    }
    if !details.is_empty() {
        return Err(invalid(details));
    }
    check_size(tx.encode_to_vec().into())
}

/// Checks the size of an encoded transaction. Its content is checked by the node.
pub(crate) fn check_raw(tx: Bytes) -> Result<Bytes, Problem> {
    if tx.is_empty() {
        return Err(invalid(vec![detail("tx", "is missing", "")]));
    }
    check_size(tx)
}

/// The finality that a client waits for.
pub(crate) fn required_finality(kind: i32, rules: &Rules) -> Result<Finality, Problem> {
    let kind = SubmissionType::try_from(kind)
        .map_err(|_| invalid(vec![detail("type", "is not a submission type", &kind.to_string())]))?;
    if kind == SubmissionType::TypeCommit && !rules.allow_commit {
        return Err(Problem::new(Code::Unimplemented, NOT_MAPPED, "TYPE_COMMIT is switched off here"));
    }
    Ok(Finality::from_type(kind))
}

/// Checks the signature. Bytes that are no transaction pass: the node refuses them.
pub(crate) async fn verify(tx: &Bytes, signatures: &Signatures, nodes: &Nodes) -> Result<(), Problem> {
    let Ok(tx) = Transaction::decode(tx.clone()) else { return Ok(()) };
    let algorithm = tx.signature.as_ref().map_or("", |signature| &signature.algo);
    if algorithm != signatures.algorithm {
        let what = format!("must be {}", signatures.algorithm);
        return Err(invalid(vec![detail("tx.signature.algo", &what, algorithm)]));
    }
    let chain = nodes.chain().await.map_err(CallError::problem)?;
    mesh_transaction::verify(&tx, &chain, &signatures.algorithm).map_err(|_| {
        invalid(vec![detail("tx.signature.value", "does not fit the transaction and its key", "")])
    })
}

fn check_size(tx: Bytes) -> Result<Bytes, Problem> {
    match tx.len() {
        bytes if bytes <= MAX_TX_BYTES => Ok(tx),
        bytes => Err(invalid(vec![detail("tx", "is too large: at most 1048576 bytes", &bytes.to_string())])),
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn detail(field: &str, what: &str, value: &str) -> Detail {
    Detail {
        number: MALFORMED,
        message: format!("{field} {what}"),
        inner: value.chars().take(MAX_INNER_CHARS).collect(),
    }
}

fn invalid(details: Vec<Detail>) -> Problem {
    Problem { code: Code::InvalidArgument, details, cause: None, retry_after_s: None, is_local: false }
}
