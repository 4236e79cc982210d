//! The server side of ABCI 2.0 over a socket, as CometBFT 0.38 uses it: length-delimited protobuf requests,
//! answered in order. A node opens four connections.

use std::{convert::Infallible, io, time::Duration};

use bytes::{Buf as _, Bytes, BytesMut};
use mesh_transaction::{Block, Refusal};
use prost::{Message as _, encoding::decode_varint};
use tendermint_proto::{
    google::protobuf::Timestamp,
    v0_38::abci::{
        Request, RequestFinalizeBlock, RequestProcessProposal, Response, ResponseCheckTx, ResponseCommit,
        ResponseEcho, ResponseException, ResponseFinalizeBlock, ResponseFlush, ResponseInfo,
        ResponseInitChain, ResponsePrepareProposal, ResponseProcessProposal, ResponseQuery,
        ResponseVerifyVoteExtension, request::Value as AbciRequest, response::Value as AbciResponse,
        response_process_proposal::ProposalStatus, response_verify_vote_extension::VerifyStatus,
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::{
    accept::accept,
    application::{Application, ApplicationError},
};

/// Limit of connections: four of a node, and those of its previous run that have not ended yet.
const MOST_CONNECTIONS: usize = 16;
/// Limit of a request, bytes. Blocks are far smaller; a greater length means a corrupt stream.
const LONGEST_REQUEST: u64 = 100 << 20;
/// The longest encoding of a varint, bytes.
const LONGEST_VARINT: usize = 10;
/// Timeout of a write, after which the connection is closed.
const WRITE_WITHIN: Duration = Duration::from_secs(10);

/// Serves an application until dropped; its connections end with it.
pub async fn serve_application(listener: TcpListener, application: Application) -> Infallible {
    accept(listener, MOST_CONNECTIONS, move |stream| {
        let application = application.clone();
        async move {
            if let Err(error) = conversation(stream, &application).await {
                tracing::warn!(%error, "a connection of the node ended early");
            }
        }
    })
    .await
}

async fn conversation(mut stream: TcpStream, application: &Application) -> io::Result<()> {
    // Nagle's algorithm would delay short answers until the previous one is acknowledged.
    stream.set_nodelay(true)?;
    let (mut read, mut answers) = (BytesMut::new(), Vec::new());
    loop {
        while let Some(request) = next(&mut read)? {
            let value = Some(answer(application, request).await);
            Response { value }.encode_length_delimited(&mut answers).map_err(io::Error::other)?;
        }
        if !answers.is_empty() {
            timeout(WRITE_WITHIN, stream.write_all(&answers)).await??;
            answers.clear();
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
}

/// Splits the first request off the buffer; `None` while it is incomplete.
fn next(read: &mut BytesMut) -> io::Result<Option<Request>> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut rest = &read[..];
    let length = match decode_varint(&mut rest) {
        Ok(length) if length <= LONGEST_REQUEST => length as usize,
        Err(_) if read.len() < LONGEST_VARINT => return Ok(None),
        Ok(length) => return Err(invalid(format!("a request of {length} bytes"))),
        Err(error) => return Err(invalid(error.to_string())),
    };
    let head = read.len() - rest.len();
    if rest.len() < length {
        read.reserve(length - rest.len());
        return Ok(None);
    }
    read.advance(head);
    let message = read.split_to(length).freeze();
    Request::decode(message).map(Some).map_err(|error| invalid(error.to_string()))
}

async fn answer(application: &Application, request: Request) -> AbciResponse {
    let response = match request.value {
        None => Err("an empty request".to_owned()),
        Some(request) => respond(application, request).await.map_err(|error| error.to_string()),
    };
    response.unwrap_or_else(|error| {
        // The node ends at an exception. After its restart it repeats the requests since the last stored
        // block.
        tracing::error!(error, "the node asks what cannot be done");
        AbciResponse::Exception(ResponseException { error })
    })
}

async fn respond(application: &Application, request: AbciRequest) -> Result<AbciResponse, ApplicationError> {
    Ok(match request {
        AbciRequest::Echo(echo) => AbciResponse::Echo(ResponseEcho { message: echo.message }),
        AbciRequest::Flush(_) => AbciResponse::Flush(ResponseFlush {}),
        AbciRequest::Info(_) => AbciResponse::Info(info(application)),
        AbciRequest::InitChain(chain) => {
            application.begin(&chain.chain_id)?;
            AbciResponse::InitChain(ResponseInitChain::default())
        }
        AbciRequest::Query(_) => AbciResponse::Query(ResponseQuery {
            code: 1,
            log: "blocks and transactions are to be had from the node itself".to_owned(),
            ..ResponseQuery::default()
        }),
        AbciRequest::CheckTx(check) => {
            let (code, data) = verdict(application.check(&check.tx).err());
            AbciResponse::CheckTx(ResponseCheckTx { code, data, ..ResponseCheckTx::default() })
        }
        AbciRequest::PrepareProposal(proposal) => AbciResponse::PrepareProposal(ResponsePrepareProposal {
            txs: within(proposal.txs, proposal.max_tx_bytes),
        }),
        AbciRequest::ProcessProposal(RequestProcessProposal { hash, height, time, .. }) => {
            application.proposed(block(height, &hash, time));
            AbciResponse::ProcessProposal(ResponseProcessProposal { status: ProposalStatus::Accept.into() })
        }
        AbciRequest::FinalizeBlock(request) => {
            AbciResponse::FinalizeBlock(finalize(application, request).await?)
        }
        AbciRequest::Commit(_) => {
            application.commit().await?;
            AbciResponse::Commit(ResponseCommit::default())
        }
        // Unused: there are no vote extensions and no snapshots.
        AbciRequest::ExtendVote(_) => AbciResponse::ExtendVote(Default::default()),
        AbciRequest::VerifyVoteExtension(_) => {
            let status = VerifyStatus::Accept.into();
            AbciResponse::VerifyVoteExtension(ResponseVerifyVoteExtension { status })
        }
        AbciRequest::ListSnapshots(_) => AbciResponse::ListSnapshots(Default::default()),
        AbciRequest::OfferSnapshot(_) => AbciResponse::OfferSnapshot(Default::default()),
        AbciRequest::LoadSnapshotChunk(_) => AbciResponse::LoadSnapshotChunk(Default::default()),
        AbciRequest::ApplySnapshotChunk(_) => AbciResponse::ApplySnapshotChunk(Default::default()),
    })
}

fn info(application: &Application) -> ResponseInfo {
    let (height, hash) = application.status();
    ResponseInfo {
        data: "mesh".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        app_version: 1,
        last_block_height: height.cast_signed(),
        last_block_app_hash: hash.into(),
    }
}

async fn finalize(
    application: &Application,
    request: RequestFinalizeBlock,
) -> Result<ResponseFinalizeBlock, ApplicationError> {
    let decided = block(request.height, &request.hash, request.time);
    let (stored, app_hash) = application.finalize(decided, request.txs).await?;
    let (tx_results, events) = stored.results()?;
    Ok(ResponseFinalizeBlock { tx_results, events, app_hash: app_hash.into(), ..Default::default() })
}

/// The code and the data of a check, which the node passes on to clients.
fn verdict(refusal: Option<Refusal>) -> (u32, Bytes) {
    refusal.map_or((0, Bytes::new()), |refusal| (refusal.code, refusal.reason.into()))
}

/// A block for the spam rules, with the hash that the node's status shows.
fn block(height: i64, hash: &[u8], time: Option<Timestamp>) -> Block {
    let time = time.map_or(Duration::ZERO, |time| {
        let nanoseconds = u32::try_from(time.nanos).unwrap_or_default();
        Duration::new(u64::try_from(time.seconds).unwrap_or_default(), nanoseconds.min(999_999_999))
    });
    Block { height: height.unsigned_abs(), hash: hex::encode(hash), time }
}

/// The first transactions, as many as fit into `most_bytes`.
fn within(mut txs: Vec<Bytes>, most_bytes: i64) -> Vec<Bytes> {
    let (most, mut bytes) = (u64::try_from(most_bytes).unwrap_or_default(), 0);
    let fits = txs.iter().take_while(|tx| {
        bytes += tx.len() as u64;
        bytes <= most
    });
    txs.truncate(fits.count());
    txs
}

#[cfg(test)]
mod tests {
    use tendermint_proto::v0_38::abci::{RequestCheckTx, RequestFlush};

    use super::*;

    #[test]
    fn requests_are_read_however_they_are_cut() {
        let check = Request {
            value: Some(AbciRequest::CheckTx(RequestCheckTx { tx: vec![7; 300].into(), r#type: 0 })),
        };
        let flush = Request { value: Some(AbciRequest::Flush(RequestFlush {})) };
        let sent = [check.encode_length_delimited_to_vec(), flush.encode_length_delimited_to_vec()].concat();
        for cut in 0..=sent.len() {
            let mut read = BytesMut::from(&sent[..cut]);
            let mut requests = Vec::new();
            requests.extend(next(&mut read).unwrap());
            requests.extend(next(&mut read).unwrap());
            read.extend_from_slice(&sent[cut..]);
            while let Some(request) = next(&mut read).unwrap() {
                requests.push(request);
            }
            assert_eq!(requests, [check.clone(), flush.clone()], "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_request_ends_the_connection() {
        for wrong in [&[0xff_u8; 12][..], &[3, 0xff, 0xff, 0xff], &[0xff, 0xff, 0xff, 0xff, 0x7f]] {
            assert_eq!(next(&mut BytesMut::from(wrong)).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_proposal_has_no_more_bytes_than_it_may() {
        let txs: Vec<Bytes> = [3, 4, 1].map(|length| Bytes::from(vec![0; length])).to_vec();
        for (most, count) in [(0, 0), (-1, 0), (6, 1), (7, 2), (8, 3), (100, 3)] {
            assert_eq!(within(txs.clone(), most).len(), count, "{most}");
        }
    }
}
