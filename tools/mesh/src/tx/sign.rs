//! `mesh tx sign`: makes a signed transaction with proof of work of a command.

use std::{
    borrow::Cow,
    io::{self, Read},
    path::Path,
    time::Instant,
};

use bytes::Bytes;
use mesh_transaction::{Puzzle, TxHash, encode};
use proto_msgs::{
    Operation as _,
    v2::{
        CheckTransactionRequest, LastBlockHeightReply, LastBlockHeightRequest, ProofOfWork, Transaction,
        TxVersion, transaction::From as Sender,
    },
};
use rand::Rng as _;

use super::{
    args::{InputArgs, SignArgs, SigningArgs, WorkArgs},
    key, open, unreachable, work,
};
use crate::{
    failure::{Failure, failed},
    gateway::GatewayArgs,
    signals::run_until_stopped,
    terminal::{print_json, print_line},
};

/// The only hash function that is supported.
const HASH_FUNCTION: &str = "sha3_24_rounds";
/// Limit of a command, bytes: the node's limit of a transaction.
const LONGEST_INPUT: u64 = 1 << 20;

/// Prints the body of the request that submits the transaction.
pub(super) async fn sign(args: SignArgs) -> Result<(), Failure> {
    let input_data = input(&args.input)?;
    let tx = make(args.signing, &args.gateway, input_data, !args.json).await?;
    print_json(&CheckTransactionRequest { tx: Some(tx) })
}

/// Makes the signed transaction of a command; `talks` about its hash and the proof of work.
pub(super) async fn make(
    args: SigningArgs,
    at: &GatewayArgs,
    input_data: Vec<u8>,
    talks: bool,
) -> Result<Transaction, Failure> {
    let key = key::read(&args.key)?;
    let version = args.tx_version;
    let head = run_until_stopped(ask(&args, at, version), "stopped").await?;
    let chain_id =
        args.chain_id.or_else(|| head.as_ref().map(|head| head.chain_id.clone())).unwrap_or_default();
    let signature = key.sign(version, &chain_id, &input_data, &args.algorithm);
    let pow = if args.work.no_pow { None } else { Some(proof(args.work, head.as_ref(), talks).await?) };
    let tx = Transaction {
        input_data: Bytes::from(input_data),
        signature,
        from: Some(Sender::PubKey(key.public())),
        version: version.into(),
        pow,
    };
    if talks {
        print_line(&format!("transaction {}", TxHash::of(&encode(&tx))));
    }
    Ok(tx)
}

/// Asks the gateway for the chain's id and newest block, when an option does not give them.
async fn ask(
    args: &SigningArgs,
    at: &GatewayArgs,
    version: TxVersion,
) -> Result<Option<LastBlockHeightReply>, Failure> {
    let needs_chain = args.chain_id.is_none() && version == TxVersion::V3;
    let has_block_and_difficulty = args.work.block_hash.is_some() && args.work.difficulty.is_some();
    if !needs_chain && (args.work.no_pow || has_block_and_difficulty) {
        return Ok(None);
    }
    let gateway = open(at)?;
    let url = gateway.url(LastBlockHeightRequest::NAME);
    let head = gateway.get(&url, &["hash", "spamPowHashFunction", "spamPowDifficulty", "chainId"]).await;
    let head: LastBlockHeightReply = head.map_err(|error| unreachable(&error, at))?;
    if head.spam_pow_hash_function != HASH_FUNCTION && !args.work.no_pow {
        return Err(failed!(
            "the network's proof of work uses {:?}, which this release does not know; take a newer one",
            head.spam_pow_hash_function
        ));
    }
    Ok(Some(head))
}

async fn proof(
    args: WorkArgs,
    head: Option<&LastBlockHeightReply>,
    talks: bool,
) -> Result<ProofOfWork, Failure> {
    let block =
        args.block_hash.or_else(|| head.map(|head| head.hash.to_ascii_lowercase())).unwrap_or_default();
    let difficulty = args.difficulty.or(head.map(|head| head.spam_pow_difficulty)).unwrap_or_default();
    let tid = args.tid.unwrap_or_else(|| hex::encode(rand::rng().random::<[u8; 32]>()));
    let puzzle = Puzzle::new(&args.pow_prefix, &block, &tid);
    let begun = Instant::now();
    let (nonce, tries) = work::find(puzzle, difficulty).await?;
    if talks {
        let seconds = begun.elapsed().as_secs_f64();
        print_line(&format!("proof of work of {difficulty} bits: {tries} tries in {seconds:.1} s"));
    }
    Ok(ProofOfWork { tid, nonce })
}

fn input(args: &InputArgs) -> Result<Vec<u8>, Failure> {
    if let Some(given) = args.hex.as_ref().or(args.base64.as_ref()) {
        return Ok(given.0.clone());
    }
    let path = args.input.as_deref().unwrap_or(Path::new("-"));
    let bytes = read(path, LONGEST_INPUT)?;
    if bytes.is_empty() {
        return Err(Failure::failed(
            "a command has at least one byte; give one with --input, --hex or --base64",
        ));
    }
    Ok(bytes)
}

/// Reads a file, or standard input.
pub(super) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let take = |reader: &mut dyn Read| {
        let mut bytes = Vec::new();
        reader.take(most + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    let read = match path == Path::new("-") {
        true => take(&mut io::stdin().lock()),
        false => std::fs::File::open(path).and_then(|mut file| take(&mut file)),
    };
    let bytes = read.map_err(|error| failed!("cannot read {} ({error}); give another file", name(path)))?;
    match bytes.len() as u64 <= most {
        true => Ok(bytes),
        false => Err(failed!("{} is longer than any transaction; give another file", name(path))),
    }
}

/// The name of a file or, for `-`, of standard input.
pub(super) fn name(path: &Path) -> Cow<'_, str> {
    if path == Path::new("-") { Cow::Borrowed("standard input") } else { path.to_string_lossy() }
}
