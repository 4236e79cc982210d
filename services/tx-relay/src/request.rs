//! The checks before the node is asked (contract 5.2). All that is wrong with a transaction is reply at once.

use bytes::Bytes;
use mesh_problem::{Code, Detail, MALFORMED, Problem};
use prost::Message;
use proto_msgs::v2::{SubmissionType, Transaction, TxVersion, transaction::From};

use crate::{
    config::{Rules, Signatures},
    node::Nodes,
    result_cache::Finality,
    submission,
};

/// The consensus engine's default limit for one transaction.
const TX_BYTES: usize = 1 << 20;

/// What is shown of an offending text.
const SHOWN_CHARS: usize = 200;

/// Checks a transaction and encodes it, fields in ascending number, so that its hash is the same everywhere.
pub(crate) fn encoded(tx: Option<Transaction>) -> Result<Bytes, Problem> {
    let Some(tx) = tx else { return Err(wrong(vec![detail("tx", "is missing", "")])) };
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
        return Err(wrong(details));
    }
    sized(tx.encode_to_vec().into())
}

/// Checks a transaction that comes encoded. What is in it is the node's to judge.
pub(crate) fn raw(tx: Bytes) -> Result<Bytes, Problem> {
    if tx.is_empty() {
        return Err(wrong(vec![detail("tx", "is missing", "")]));
    }
    sized(tx)
}

/// What a client wants to wait for.
pub(crate) fn wanted(kind: i32, rules: &Rules) -> Result<Finality, Problem> {
    let kind = SubmissionType::try_from(kind)
        .map_err(|_| wrong(vec![detail("type", "is no submission type", &kind.to_string())]))?;
    if kind == SubmissionType::TypeCommit && !rules.allow_commit {
        return Err(Problem::new(
            Code::Unimplemented,
            mesh_problem::NOT_MAPPED,
            "TYPE_COMMIT is switched off here",
        ));
    }
    Ok(Finality::wanted(kind))
}

/// Checks the signature. Bytes that are no transaction are left to the node.
pub(crate) async fn verify(tx: &Bytes, signatures: &Signatures, nodes: &Nodes) -> Result<(), Problem> {
    let Ok(tx) = Transaction::decode(tx.clone()) else { return Ok(()) };
    let algorithm = tx.signature.as_ref().map_or("", |signature| &signature.algo);
    if algorithm != signatures.algorithm {
        let what = format!("must be {}", signatures.algorithm);
        return Err(wrong(vec![detail("tx.signature.algo", &what, algorithm)]));
    }
    let chain = nodes.chain().await.map_err(submission::problem)?;
    mesh_transaction::verify(&tx, &chain, &signatures.algorithm).map_err(|_| {
        wrong(vec![detail("tx.signature.value", "does not fit the transaction and its key", "")])
    })
}

fn sized(tx: Bytes) -> Result<Bytes, Problem> {
    match tx.len() {
        bytes if bytes <= TX_BYTES => Ok(tx),
        bytes => Err(wrong(vec![detail("tx", "is too large: at most 1048576 bytes", &bytes.to_string())])),
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn detail(field: &str, what: &str, got: &str) -> Detail {
    Detail {
        number: MALFORMED,
        message: format!("{field} {what}"),
        inner: got.chars().take(SHOWN_CHARS).collect(),
    }
}

fn wrong(details: Vec<Detail>) -> Problem {
    Problem { code: Code::InvalidArgument, details, cause: None }
}

#[cfg(test)]
mod tests {
    use proto_msgs::v2::{ProofOfWork, Signature};

    use super::*;

    fn good() -> Transaction {
        Transaction {
            input_data: Bytes::from_static(b"command"),
            signature: Some(Signature { value: "aB".repeat(64), algo: "ed25519".to_owned(), version: 1 }),
            version: TxVersion::V3.into(),
            pow: None,
            from: Some(From::PubKey("0".repeat(64))),
        }
    }

    fn fields(change: impl FnOnce(&mut Transaction)) -> Vec<String> {
        let mut tx = good();
        change(&mut tx);
        let problem = encoded(Some(tx)).unwrap_err();
        assert!(problem.details.iter().all(|detail| detail.number == MALFORMED));
        assert_eq!(problem.code, Code::InvalidArgument);
        let field = |detail: &Detail| detail.message.split(' ').next().unwrap_or_default().to_owned();
        problem.details.iter().map(field).collect()
    }

    #[test]
    fn each_wrong_field_is_named_and_several_together() {
        assert!(encoded(Some(good())).is_ok());
        assert_eq!(encoded(None).unwrap_err().details[0].message, "tx is missing");
        assert_eq!(fields(|tx| tx.version = 0), ["tx.version"]);
        assert_eq!(fields(|tx| tx.version = 1), ["tx.version"]);
        assert_eq!(fields(|tx| tx.from = None), ["tx.pubKey"]);
        assert_eq!(fields(|tx| tx.from = Some(From::PubKey("g".repeat(64)))), ["tx.pubKey"]);
        assert_eq!(fields(|tx| tx.from = Some(From::Address("a".to_owned()))), ["tx.address"]);
        assert_eq!(fields(|tx| tx.input_data = Bytes::new()), ["tx.inputData"]);
        assert_eq!(fields(|tx| tx.signature = None), ["tx.signature"]);
        let emptied = fields(|tx| (tx.signature, tx.version) = (Some(Signature::default()), 7));
        assert_eq!(
            emptied,
            ["tx.version", "tx.signature.value", "tx.signature.algo", "tx.signature.version"]
        );
        assert_eq!(fields(|tx| tx.input_data = vec![0; TX_BYTES].into()), ["tx"]);
        assert_eq!(raw(Bytes::new()).unwrap_err().number(), MALFORMED);
        assert!(raw(vec![7; TX_BYTES].into()).is_ok() && raw(vec![7; TX_BYTES + 1].into()).is_err());
    }

    #[test]
    fn fields_are_written_in_ascending_number_defaults_left_out_and_text_as_given() {
        let mut tx = good();
        tx.pow = Some(ProofOfWork::default());
        let signature =
            [&[10, 128, 1][..], "aB".repeat(64).as_bytes(), &[18, 7], b"ed25519", &[24, 1]].concat();
        let expected = [
            &[10, 7][..],
            b"command",
            &[18, 142, 1],
            &signature,
            &[0xd2, 0x3e, 64],
            "0".repeat(64).as_bytes(),
            &[0x80, 0x7d, 3],
            &[0xc2, 0xbb, 0x01, 0],
        ]
        .concat();
        assert_eq!(encoded(Some(tx)).unwrap(), expected);
    }
}
