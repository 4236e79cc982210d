//! The methods of the RPC: parameters in, result or error out.

use mesh_transaction::{Refusal, TxHash};
use serde_json::{Value, json};

use crate::{
    answers,
    call::{Call, RpcError},
    chain::Chain,
    mempool::BroadcastError::{self, Cached, Full, TooLarge},
    stored::StoredBlock,
};

/// Default and limit of the number of transactions in `unconfirmed_txs`.
const USUAL_PAGE: i64 = 30;
const GREATEST_PAGE: i64 = 100;

/// Executes a call. `address` is where this node answers.
pub(crate) async fn execute(chain: &Chain, address: &str, call: &Call) -> Result<Value, RpcError> {
    match &*call.method {
        "health" => Ok(json!({})),
        "status" => {
            let (oldest, newest) = chain.application().bounds();
            let chain_id = chain.application().chain_id();
            Ok(answers::status(chain_id, address, oldest.as_ref(), newest.as_ref(), chain.is_catching_up()))
        }
        "broadcast_tx_async" => {
            // The result of the check is not part of this answer.
            let (hash, _) = broadcast(chain, call).await?;
            Ok(answers::broadcast(&hash, None))
        }
        "broadcast_tx_sync" => {
            let (hash, refusal) = broadcast(chain, call).await?;
            Ok(answers::broadcast(&hash, refusal.as_ref()))
        }
        "broadcast_tx_commit" => {
            let outcome = chain.broadcast_commit(call.bytes("tx")?).await;
            let (hash, outcome) = outcome.map_err(|error| RpcError::internal(&commit_error(&error)))?;
            Ok(answers::commit(&hash, &outcome))
        }
        "check_tx" => {
            let application = chain.application();
            let judged = application.read(&call.bytes("tx")?).and_then(|tx| application.judge(&tx));
            Ok(answers::checked(judged.err().as_ref()))
        }
        "tx" => tx(chain, call).await,
        "block" => Ok(answers::block(chain.application().chain_id(), &block(chain, call).await?)),
        "block_results" => {
            let stored = block(chain, call).await?;
            let response = stored.results().map_err(|error| RpcError::internal(&error))?;
            Ok(answers::block_results(stored.height, &response))
        }
        "unconfirmed_txs" => {
            let limit = call.number("limit")?.filter(|limit| *limit > 0).unwrap_or(USUAL_PAGE);
            let (total, bytes, txs) = chain.waiting(limit.min(GREATEST_PAGE).unsigned_abs() as usize);
            Ok(answers::waiting(total, bytes, Some(&txs)))
        }
        "num_unconfirmed_txs" => {
            let (total, bytes, _) = chain.waiting(0);
            Ok(answers::waiting(total, bytes, None))
        }
        _ => Err(RpcError::METHOD_NOT_FOUND),
    }
}

async fn broadcast(chain: &Chain, call: &Call) -> Result<(TxHash, Option<Refusal>), RpcError> {
    chain.broadcast(&call.method, call.bytes("tx")?).await.map_err(|error| RpcError::internal(&error))
}

/// The error text of a commit call: CometBFT prefixes some texts with the failing call.
fn commit_error(error: &BroadcastError) -> String {
    match error {
        Cached | Full(_) | TooLarge { .. } => format!("error on broadcastTxCommit: {error}"),
        _ => error.to_string(),
    }
}

async fn tx(chain: &Chain, call: &Call) -> Result<Value, RpcError> {
    let bytes = call.bytes("hash")?;
    let not_found = || RpcError::internal(&format!("tx ({}) not found", hex::encode_upper(&bytes)));
    let hash: [u8; 32] = bytes.as_ref().try_into().map_err(|_| not_found())?;
    let hash = TxHash::from(hash);
    let found = chain.application().find(&hash).await.map_err(|error| RpcError::internal(&error))?;
    Ok(answers::tx(&hash, &found.ok_or_else(not_found)?))
}

/// The block of the height that is asked for, else the newest one.
async fn block(chain: &Chain, call: &Call) -> Result<StoredBlock, RpcError> {
    let (oldest, newest) = chain.application().bounds();
    let newest = newest.map_or(0, |block| block.height);
    let oldest = oldest.map_or(newest, |block| block.height);
    let height = match call.number("height")? {
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
    let block = chain.application().block(height).await.map_err(|error| RpcError::internal(&error))?;
    block.ok_or_else(|| {
        RpcError::internal(&format!("height {height} is not available, lowest height is {oldest}"))
    })
}
