//! The server side of ABCI 2.0 over a socket, as CometBFT 0.38 uses it: length-delimited protobuf requests,
//! answered in order. A node opens four connections.

use std::{convert::Infallible, io, time::Duration};

use bytes::Bytes;
use mesh_transaction::Block;
use prost::{Message as _, decode_length_delimiter};
use tendermint_proto::{
    google::protobuf::Timestamp,
    v0_38::abci::{
        Request, RequestFinalizeBlock, RequestProcessProposal, Response, ResponseCheckTx, ResponseCommit,
        ResponseEcho, ResponseException, ResponseFinalizeBlock, ResponseFlush, ResponseInfo,
        ResponseInitChain, ResponsePrepareProposal, ResponseProcessProposal, ResponseQuery,
        request::Value as AbciRequest, response::Value as AbciResponse,
        response_process_proposal::ProposalStatus,
    },
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::spawn_blocking,
    time::timeout,
};

use crate::{accept::accept, application::Application};

/// Limit of connections: four of a node, and those of its previous run that have not ended yet.
const MOST_CONNECTIONS: usize = 16;
/// Limit of a request, bytes. Blocks are far smaller; a greater length means a corrupt stream.
const LONGEST_REQUEST: usize = 100 << 20;
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
    let (read, mut write) = stream.split();
    let (mut read, mut answers) = (BufReader::new(read), Vec::new());
    while let Some(request) = next(&mut read).await? {
        let application = application.clone();
        let answering = spawn_blocking(move || answer(&application, request));
        let value = Some(answering.await.map_err(io::Error::other)?);
        Response { value }.encode_length_delimited(&mut answers).map_err(io::Error::other)?;
        // Requests that were sent together are answered together.
        if read.buffer().is_empty() {
            timeout(WRITE_WITHIN, write.write_all(&answers)).await??;
            answers.clear();
        }
    }
    Ok(())
}

/// Reads a request; `None` at the end of the stream.
async fn next(read: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Request>> {
    let mut varint = Vec::new();
    while varint.last().is_none_or(|byte| *byte >= 0x80) && varint.len() < LONGEST_VARINT {
        match read.read_u8().await {
            Ok(byte) => varint.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && varint.is_empty() => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
    let length = decode_length_delimiter(&varint[..])?;
    if length > LONGEST_REQUEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a request of {length} bytes")));
    }
    let mut message = vec![0; length];
    read.read_exact(&mut message).await?;
    Ok(Some(Request::decode(&message[..])?))
}

fn answer(application: &Application, request: Request) -> AbciResponse {
    let response = match request.value {
        None => Err("an empty request".to_owned()),
        Some(request) => respond(application, request).map_err(|error| error.to_string()),
    };
    response.unwrap_or_else(|error| {
        // The node ends at an exception. After its restart it repeats the requests since the last stored
        // block.
        tracing::error!(error, "the node asks what cannot be done");
        AbciResponse::Exception(ResponseException { error })
    })
}

fn respond(application: &Application, request: AbciRequest) -> io::Result<AbciResponse> {
    Ok(match request {
        AbciRequest::Echo(echo) => AbciResponse::Echo(ResponseEcho { message: echo.message }),
        AbciRequest::Flush(_) => AbciResponse::Flush(ResponseFlush {}),
        AbciRequest::Info(_) => AbciResponse::Info(info(application)),
        AbciRequest::InitChain(chain) => {
            application.begin(&chain.chain_id)?;
            AbciResponse::InitChain(ResponseInitChain::default())
        }
        // There is nothing to query: the node itself serves blocks and transactions.
        AbciRequest::Query(_) => AbciResponse::Query(ResponseQuery { code: 1, ..ResponseQuery::default() }),
        AbciRequest::CheckTx(check) => {
            let checked =
                application.read(&check.tx).and_then(|candidate| application.check(&candidate, true));
            let (code, data) = checked.err().map_or((0, Bytes::new()), |no| (no.code, no.reason.into()));
            AbciResponse::CheckTx(ResponseCheckTx { code, data, ..ResponseCheckTx::default() })
        }
        AbciRequest::PrepareProposal(proposal) => AbciResponse::PrepareProposal(ResponsePrepareProposal {
            txs: within(proposal.txs, proposal.max_tx_bytes),
        }),
        AbciRequest::ProcessProposal(RequestProcessProposal { hash, height, time, .. }) => {
            application.proposed(block(height, &hash, time));
            AbciResponse::ProcessProposal(ResponseProcessProposal { status: ProposalStatus::Accept.into() })
        }
        AbciRequest::FinalizeBlock(request) => AbciResponse::FinalizeBlock(finalize(application, request)?),
        AbciRequest::Commit(_) => {
            application.commit(|| ())?;
            AbciResponse::Commit(ResponseCommit::default())
        }
        AbciRequest::ListSnapshots(_) => AbciResponse::ListSnapshots(Default::default()),
        AbciRequest::LoadSnapshotChunk(_) => AbciResponse::LoadSnapshotChunk(Default::default()),
        // Not sent: the chain has no vote extensions, and the application offers no snapshots.
        AbciRequest::ExtendVote(_)
        | AbciRequest::VerifyVoteExtension(_)
        | AbciRequest::OfferSnapshot(_)
        | AbciRequest::ApplySnapshotChunk(_) => {
            return Err(io::Error::other("there are no vote extensions and no snapshots"));
        }
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

fn finalize(application: &Application, request: RequestFinalizeBlock) -> io::Result<ResponseFinalizeBlock> {
    let decided = block(request.height, &request.hash, request.time);
    let read = |tx: Bytes| {
        let candidate = application.read(&tx);
        (tx, candidate)
    };
    let (stored, app_hash) = application.finalize(&decided, request.txs.into_iter().map(read).collect())?;
    Ok(ResponseFinalizeBlock { app_hash: app_hash.into(), ..stored.results()? })
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
    use super::*;

    #[tokio::test]
    async fn what_is_no_request_ends_the_connection() {
        for wrong in [&[0xff_u8; 12][..], &[3, 0xff, 0xff, 0xff], &[0xff, 0xff, 0xff, 0xff, 0x7f]] {
            assert_eq!(next(&mut &*wrong).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        let incomplete = next(&mut &[3, 0][..]).await.unwrap_err();
        assert_eq!(incomplete.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_proposal_has_no_more_bytes_than_it_may() {
        let txs: Vec<Bytes> = [3, 4, 1].map(|length| Bytes::from(vec![0; length])).to_vec();
        for (most, count) in [(0, 0), (-1, 0), (6, 1), (7, 2), (8, 3), (100, 3)] {
            assert_eq!(within(txs.clone(), most).len(), count, "{most}");
        }
    }
}
