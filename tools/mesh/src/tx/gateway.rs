//! Client of the gateway's transaction operations. A submission is never repeated, because the first one may
//! have succeeded.

use std::time::Duration;

use mesh_problem::{Problem, error_chain};
use mesh_transaction::TxHash;
use proto_msgs::{
    Operation,
    v2::{
        CheckTransactionReply, CheckTransactionRequest, GetTransactionReply, GetTransactionRequest,
        LastBlockHeightReply, LastBlockHeightRequest, SubmitTransactionReply, SubmitTransactionRequest,
    },
};
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    export::source::{error_text, path_of, root_of},
    failure::Failure,
    http::client_for,
};

const CONNECT: Duration = Duration::from_secs(10);
/// Timeout of an answer, longer than the gateway waits for a block.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Limit of an answer's body, bytes.
const LONGEST_BODY: usize = 4 << 20;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum GatewayError {
    /// A failure of unknown outcome: a submission may have succeeded or not.
    Unknown(String),
    /// The gateway has refused to do it.
    Refused(String),
}

/// A gateway.
pub(super) struct Gateway {
    client: Client,
    base: String,
}

impl Gateway {
    pub(super) fn new(base: &Url) -> Result<Self, Failure> {
        let client = client_for(base).connect_timeout(CONNECT).timeout(ANSWER_WITHIN).build();
        let client = client
            .map_err(|error| Failure::failed(format!("cannot make requests ({})", error_chain(&error))))?;
        Ok(Self { client, base: base.as_str().trim_end_matches('/').to_owned() })
    }

    /// The newest block and the parameters of proof of work.
    pub(super) async fn height(&self) -> Result<LastBlockHeightReply, GatewayError> {
        self.answer(self.client.get(self.url::<LastBlockHeightRequest>())).await
    }

    /// Submits, once.
    pub(super) async fn submit(
        &self,
        request: &SubmitTransactionRequest,
    ) -> Result<SubmitTransactionReply, GatewayError> {
        self.answer(self.client.post(self.url::<SubmitTransactionRequest>()).json(request)).await
    }

    /// Asks whether the node would accept the transaction.
    pub(super) async fn check(
        &self,
        request: &CheckTransactionRequest,
    ) -> Result<CheckTransactionReply, GatewayError> {
        self.answer(self.client.post(self.url::<CheckTransactionRequest>()).json(request)).await
    }

    /// The status of a transaction.
    pub(super) async fn status(&self, hash: &TxHash) -> Result<GetTransactionReply, GatewayError> {
        let url = self.url::<GetTransactionRequest>().replace("{hash}", &hash.to_string());
        self.answer(self.client.get(url)).await
    }

    fn url<O: Operation>(&self) -> String {
        format!("{}{}", self.base, path_of(O::NAME))
    }

    async fn answer<R: DeserializeOwned>(&self, request: RequestBuilder) -> Result<R, GatewayError> {
        let unknown = |error: &reqwest::Error| GatewayError::Unknown(root_of(error));
        let mut response = request.send().await.map_err(|error| unknown(&error))?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| unknown(&error))? {
            if body.len() + piece.len() > LONGEST_BODY {
                return Err(GatewayError::Refused("the answer is too long; check --url".to_owned()));
            }
            body.extend_from_slice(&piece);
        }
        if status == StatusCode::OK {
            return serde_json::from_slice(&body).map_err(|_| {
                GatewayError::Refused("the answer is none of a gateway; check --url".to_owned())
            });
        }
        let problem: Option<Problem> = serde_json::from_slice(&body).ok();
        let text = problem.as_ref().map_or_else(|| format!("HTTP {status}"), error_text);
        // 4xx answers are refusals for certain; after any other error the submission may have succeeded.
        Err(if status.is_client_error() { GatewayError::Refused(text) } else { GatewayError::Unknown(text) })
    }
}

/// Any reply as one line of JSON.
pub(super) fn line(reply: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(reply).map_err(|error| Failure::failed(error.to_string()))
}
