//! The methods of the RPC: parameters in, result or error out.

use mesh_transaction::TxHash;
use serde_json::{Value, json};

use crate::{
    answers,
    call::{Answer, Params, Posted, RpcError},
    chain::Chain,
    stored::StoredBlock,
};

/// Default and limit of the number of transactions in `unconfirmed_txs`.
const USUAL_PAGE: i64 = 30;
const GREATEST_PAGE: i64 = 100;

/// The methods with the names of their positional parameters.
const METHODS: &[(&str, &[&str])] = &[
    ("health", &[]),
    ("status", &[]),
    ("broadcast_tx_async", &["tx"]),
    ("broadcast_tx_sync", &["tx"]),
    ("broadcast_tx_commit", &["tx"]),
    ("check_tx", &["tx"]),
    ("tx", &["hash", "prove"]),
    ("block", &["height"]),
    ("block_results", &["height"]),
    ("unconfirmed_txs", &["limit"]),
    ("num_unconfirmed_txs", &[]),
];

/// The names of a method's parameters; `None` when there is no such method.
pub(crate) fn parameters(method: &str) -> Option<&'static [&'static str]> {
    METHODS.iter().find(|(name, _)| *name == method).map(|(_, parameters)| *parameters)
}

/// The names of all methods.
pub(crate) fn methods() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|(name, _)| *name)
}

/// Answers a posted call; `None` for a notification.
pub(crate) async fn answer(chain: &Chain, address: &str, mut posted: Posted) -> Option<Answer> {
    let id = posted.id.take().filter(|id| !id.is_null())?;
    let outcome = match parameters(&posted.method) {
        None => Err(RpcError::method_not_found()),
        Some(names) => match posted.params(names) {
            Ok(params) => call(chain, address, &posted.method, &params).await,
            Err(error) => Err(error),
        },
    };
    Some(Answer::new(Some(id), outcome))
}

/// Calls a method. `address` is where this node answers.
pub(crate) async fn call(
    chain: &Chain,
    address: &str,
    method: &str,
    params: &Params,
) -> Result<Value, RpcError> {
    match method {
        "health" => Ok(json!({})),
        "status" => Ok(status(chain, address)),
        "broadcast_tx_async" => {
            // The result of the check is not part of this answer.
            let (hash, _) = broadcast(chain, method, params).await?;
            Ok(answers::broadcast(&hash, None))
        }
        "broadcast_tx_sync" => {
            let (hash, refusal) = broadcast(chain, method, params).await?;
            Ok(answers::broadcast(&hash, refusal.as_ref()))
        }
        "broadcast_tx_commit" => {
            let outcome = chain.broadcast_commit(params.bytes("tx")?).await;
            let (hash, outcome) = outcome.map_err(|turned| RpcError::internal(&commit_error(&turned)))?;
            Ok(answers::commit(&hash, &outcome))
        }
        "check_tx" => Ok(answers::checked(chain.check(&params.bytes("tx")?).err().as_ref())),
        "tx" => tx(chain, params).await,
        "block" => Ok(answers::block(&chain.settings().network.chain_id, &block(chain, params).await?)),
        "block_results" => {
            let stored = block(chain, params).await?;
            let (results, events) = stored.results().map_err(|error| RpcError::internal(&error))?;
            Ok(answers::block_results(stored.height, &results, &events))
        }
        "unconfirmed_txs" => {
            let limit = params.number("limit")?.filter(|limit| *limit > 0).unwrap_or(USUAL_PAGE);
            let (total, bytes, txs) = chain.waiting(limit.min(GREATEST_PAGE).unsigned_abs() as usize);
            Ok(answers::waiting(total, bytes, Some(&txs)))
        }
        "num_unconfirmed_txs" => {
            let (total, bytes, _) = chain.waiting(0);
            Ok(answers::waiting(total, bytes, None))
        }
        _ => Err(RpcError::method_not_found()),
    }
}

async fn broadcast(
    chain: &Chain,
    method: &str,
    params: &Params,
) -> Result<(TxHash, Option<mesh_transaction::Refusal>), RpcError> {
    chain.broadcast(method, params.bytes("tx")?).await.map_err(|error| RpcError::internal(&error))
}

/// The error text of a commit call: CometBFT prefixes some texts with the failing call.
fn commit_error(turned: &crate::BroadcastError) -> String {
    use crate::BroadcastError::{Cached, Full, TooLarge};
    match turned {
        Cached | Full { .. } | TooLarge { .. } => format!("error on broadcastTxCommit: {turned}"),
        _ => turned.to_string(),
    }
}

fn status(chain: &Chain, address: &str) -> Value {
    let (oldest, newest, catching_up) = chain.status();
    let chain_id = &chain.settings().network.chain_id;
    answers::status(chain_id, address, oldest.as_ref(), newest.as_ref(), catching_up)
}

async fn tx(chain: &Chain, params: &Params) -> Result<Value, RpcError> {
    let bytes = params.bytes("hash")?;
    let not_found = || RpcError::internal(&format!("tx ({}) not found", hex::encode_upper(&bytes)));
    let hash: [u8; 32] = bytes.as_ref().try_into().map_err(|_| not_found())?;
    let hash = TxHash::from(hash);
    let found = chain.find(&hash).await.map_err(|error| RpcError::internal(&error))?;
    Ok(answers::tx(&hash, &found.ok_or_else(not_found)?))
}

/// The block of the height that is asked for, else the newest one.
async fn block(chain: &Chain, params: &Params) -> Result<StoredBlock, RpcError> {
    let (oldest, newest, _) = chain.status();
    let (oldest, newest) = (oldest.map_or(0, |block| block.height), newest.map_or(0, |block| block.height));
    let height = match params.number("height")? {
        None => newest,
        Some(height @ ..=0) => {
            return Err(RpcError::internal(&format!("height must be greater than 0, but got {height}")));
        }
        Some(height) if height.unsigned_abs() > newest => {
            return Err(RpcError::internal(&format!(
                "height {height} must be less than or equal to the current blockchain height {newest}"
            )));
        }
        Some(height) => height.unsigned_abs(),
    };
    let block = chain.block(height).await.map_err(|error| RpcError::internal(&error))?;
    block.ok_or_else(|| {
        RpcError::internal(&format!("height {height} is not available, lowest height is {oldest}"))
    })
}
