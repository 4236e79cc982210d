//! Compares the answers about a transaction with its final state, by the consensus node itself and by the gateway.

use std::{net::SocketAddr, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use mesh::failure::{Failure, cannot};
use mesh_testbed::poll;
use mesh_transaction::TxHash;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use super::{
    connection::KEY,
    submitters::{SubmissionOutcome, Submitted},
};

const CHECKED_AT_ONCE: usize = 16;
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A transaction with the answers to its clients, its state after the run, and their contradictions.
pub(crate) struct CheckedTransaction {
    pub(crate) submitted: Submitted,
    pub(crate) is_included: bool,
    /// The `status` of `GET /transaction/{hash}`, or the error or body that came instead.
    pub(crate) status: Result<String, String>,
    pub(crate) contradictions: Vec<Contradiction>,
}

impl CheckedTransaction {
    fn new(submitted: Submitted, is_included: bool, status: Result<String, String>) -> Self {
        let contradictions = contradictions(&submitted, is_included, status.as_deref().ok());
        Self { submitted, is_included, status, contradictions }
    }

    pub(crate) fn description(&self) -> String {
        let Self { submitted: Submitted { hash, outcomes, .. }, is_included, status, .. } = self;
        format!("{hash} in a block: {is_included}, status: {status:?}, answers to clients: {outcomes:?}")
    }
}

/// Asks node and gateway for the state of each transaction, and compares the answers with it. All submissions
/// must be over.
pub(crate) async fn check(
    edge: SocketAddr,
    node: &Node,
    submitted: Vec<Submitted>,
) -> Result<Vec<CheckedTransaction>, Failure> {
    let check = async |submitted: Submitted| {
        let hash = &submitted.hash;
        let (is_included, status) = (node.has(hash).await?, status(&node.client, edge, hash).await);
        Ok(CheckedTransaction::new(submitted, is_included, status))
    };
    stream::iter(submitted).map(check).buffered(CHECKED_AT_ONCE).try_collect().await
}

/// The status that the gateway reports, or the error or body that came instead.
async fn status(client: &Client, edge: SocketAddr, hash: &TxHash) -> Result<String, String> {
    let url = format!("http://{edge}/transaction/{hash}");
    // While a relay that has just ended may know more, the others answer 503.
    let answered = poll(ANSWER_WITHIN, async || match client.get(&url).bearer_auth(KEY).send().await {
        Ok(later) if later.status() == StatusCode::SERVICE_UNAVAILABLE => {
            Err(later.text().await.unwrap_or_default())
        }
        answered => Ok(answered),
    });
    let as_text = |error: reqwest::Error| error.to_string();
    let text = answered.await?.map_err(as_text)?.text().await.map_err(as_text)?;
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    answer["status"].as_str().map(str::to_owned).ok_or(text)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contradiction {
    /// Two answers contradict each other.
    Answers,
    /// A block has a transaction that was reported as refused, or never handed over.
    Chain,
    /// The status reported afterwards is wrong.
    Status,
    /// A client got an answer that violates the contract.
    Form,
    /// A client got no answer, because its connection broke.
    Lost,
}

/// The contradictions among the answers and the final state.
fn contradictions(submitted: &Submitted, is_included: bool, status: Option<&str>) -> Vec<Contradiction> {
    let Submitted { outcomes, is_bad, .. } = submitted;
    let mut found = Vec::new();
    let mut verdicts: Vec<&SubmissionOutcome> = outcomes
        .iter()
        .filter(|outcome| match outcome {
            // An acceptance before the check does not contradict a later refusal by the check.
            SubmissionOutcome::Accepted => !is_bad,
            SubmissionOutcome::Refused(_) => true,
            _ => false,
        })
        .collect();
    verdicts.sort_unstable();
    verdicts.dedup();
    if verdicts.len() > 1 {
        found.push(Contradiction::Answers);
    }
    let says_refused = outcomes.iter().any(|outcome| matches!(outcome, SubmissionOutcome::Refused(_)));
    let says_never_sent = outcomes.iter().all(|outcome| matches!(outcome, SubmissionOutcome::NotTaken(_)));
    if is_included && (says_refused || says_never_sent) {
        found.push(Contradiction::Chain);
    }
    let is_true = match status {
        Some("INCLUDED") => is_included,
        Some("REFUSED") => !is_included && *is_bad,
        Some("PENDING" | "UNKNOWN") => !is_included,
        _ => false,
    };
    if !is_true {
        found.push(Contradiction::Status);
    }
    if outcomes.iter().any(|outcome| matches!(outcome, SubmissionOutcome::Other(_))) {
        found.push(Contradiction::Form);
    }
    if outcomes.iter().any(|outcome| matches!(outcome, SubmissionOutcome::Lost(_))) {
        found.push(Contradiction::Lost);
    }
    found
}

/// How long waiting transactions may take to get into blocks.
const EMPTY_WITHIN: Duration = Duration::from_secs(30);

/// An RPC client of one node.
pub(crate) struct Node {
    client: Client,
    url: String,
}

impl Node {
    /// Waits until a node answers and no transaction waits for a block.
    ///
    /// # Errors
    /// When transactions still wait after half a minute.
    pub(crate) async fn idle(address: SocketAddr) -> Result<Self, Failure> {
        let client = Client::builder().no_proxy().timeout(ANSWER_WITHIN).build();
        let client = client.map_err(|error| cannot("make an HTTP client", &error))?;
        let node = Self { client, url: format!("http://{address}") };
        let is_idle = async || match node.call("num_unconfirmed_txs", &json!({})).await {
            Ok(waiting) if waiting["result"]["total"] == "0" => Ok(()),
            _ => Err(Failure::failed("transactions wait at the node and come into no block")),
        };
        poll(EMPTY_WITHIN, is_idle).await?;
        Ok(node)
    }

    /// Whether a block has a transaction.
    pub(crate) async fn has(&self, hash: &TxHash) -> Result<bool, Failure> {
        let answer = self.call("tx", &json!({"hash": STANDARD.encode(hash.bytes())})).await?;
        let message = answer["error"]["data"].as_str().unwrap_or_default();
        match (answer["result"].is_object(), message.ends_with("not found")) {
            (true, _) => Ok(true),
            (false, true) => Ok(false),
            (false, false) => Err(Failure::failed(format!("the node answers {answer}"))),
        }
    }

    async fn call(&self, method: &str, parameters: &Value) -> Result<Value, Failure> {
        let call = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": parameters});
        let called = async { self.client.post(&self.url).json(&call).send().await?.json().await };
        called.await.map_err(|error: reqwest::Error| cannot("ask the node", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        outcomes: &[SubmissionOutcome],
        is_bad: bool,
        is_included: bool,
        status: &str,
    ) -> Vec<Contradiction> {
        let submitted = Submitted { hash: TxHash::of(b"a"), is_bad, outcomes: outcomes.to_vec() };
        contradictions(&submitted, is_included, Some(status))
    }

    #[test]
    fn answers_agree_with_each_other_and_with_the_chain() {
        use Contradiction::{Answers, Chain, Form, Status};
        use SubmissionOutcome::{Accepted, Left, Lost, NotTaken, Other, Refused, Unknown};
        assert!(found(&[Accepted, Unknown, Left, NotTaken(503)], false, true, "INCLUDED").is_empty());
        // A killed node loses accepted transactions that are in no block.
        assert!(found(&[Accepted, Unknown], false, false, "PENDING").is_empty());
        assert!(found(&[Accepted, Refused(89)], true, false, "REFUSED").is_empty());
        assert_eq!(found(&[Accepted, Refused(51)], false, false, "PENDING"), [Answers]);
        assert_eq!(found(&[Refused(51), Refused(89)], true, false, "REFUSED"), [Answers]);
        assert_eq!(found(&[Refused(51)], false, true, "INCLUDED"), [Chain]);
        assert_eq!(found(&[NotTaken(503)], false, true, "INCLUDED"), [Chain]);
        assert_eq!(found(&[Accepted], false, true, "PENDING"), [Status]);
        assert_eq!(found(&[Accepted], false, false, "INCLUDED"), [Status]);
        assert_eq!(found(&[Accepted], false, false, "REFUSED"), [Status]);
        assert_eq!(found(&[Other(String::new())], false, false, "UNKNOWN"), [Form]);
        // A client without an answer proves nothing about the chain.
        assert_eq!(found(&[Lost(String::new())], false, true, "INCLUDED"), [Contradiction::Lost]);
    }
}
