//! An application, and a client that plays the node.

use bytes::Bytes;
use mesh_devnode::{Application, Base, ChainFile, Checks, serve_application};
use mesh_transaction::{SpamRules, encode};
use prost::Message as _;
use proto_msgs::v2::ProofOfWork;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tendermint_proto::{
    google::protobuf::Timestamp,
    v0_38::abci::{
        Request, RequestCheckTx, RequestCommit, RequestFinalizeBlock, RequestFlush, RequestInfo,
        RequestInitChain, RequestProcessProposal, Response, ResponseFinalizeBlock,
        request::Value as RequestValue, response::Value as ResponseValue,
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::transactions::{CHAIN, network, rules, signed, work};

/// An application and one connection to it.
pub(crate) struct Fixture {
    folder: TempDir,
    pub(crate) application: Application,
    serving: JoinHandle<()>,
    stream: TcpStream,
}

impl Fixture {
    pub(crate) async fn new(rules: SpamRules) -> Self {
        Self::after(&Base::empty(CHAIN, rules)).await
    }

    pub(crate) async fn after(base: &Base) -> Self {
        let folder = tempfile::tempdir().unwrap();
        ChainFile::create(&folder.path().join("blocks"), base).unwrap();
        Self::in_folder(folder).await
    }

    async fn in_folder(folder: TempDir) -> Self {
        let file = folder.path().join("blocks");
        let application = Application::open(network(), &file, Checks::All).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = application.clone();
        let serving = tokio::spawn(async move { match serve_application(listener, served).await {} });
        let stream = TcpStream::connect(address).await.unwrap();
        Self { folder, application, serving, stream }
    }

    /// Aborts the application, and starts it again from its file.
    pub(crate) async fn crash(self) -> Self {
        let Self { folder, application, serving, stream } = self;
        serving.abort();
        let _ = serving.await;
        drop((application, stream));
        Self::in_folder(folder).await
    }

    pub(crate) async fn ask(&mut self, request: RequestValue) -> ResponseValue {
        // As CometBFT does it: with a flush, whose answer comes second.
        for value in [request, RequestValue::Flush(RequestFlush {})] {
            let request = Request { value: Some(value) };
            self.stream.write_all(&request.encode_length_delimited_to_vec()).await.unwrap();
        }
        let answer = self.answer().await;
        if !matches!(answer, ResponseValue::Exception(_)) {
            assert!(matches!(self.answer().await, ResponseValue::Flush(_)));
        }
        answer
    }

    async fn answer(&mut self) -> ResponseValue {
        let mut varint = vec![self.stream.read_u8().await.expect("the application hung up")];
        while varint.last().is_some_and(|byte| *byte >= 0x80) {
            varint.push(self.stream.read_u8().await.unwrap());
        }
        let mut message = vec![0; prost::decode_length_delimiter(&varint[..]).unwrap()];
        self.stream.read_exact(&mut message).await.unwrap();
        Response::decode(&message[..]).unwrap().value.unwrap()
    }

    /// Height and app hash of the application's Info response.
    pub(crate) async fn info(&mut self) -> (i64, Bytes) {
        let answer = self.ask(RequestValue::Info(RequestInfo::default())).await;
        let ResponseValue::Info(info) = answer else { panic!("no info") };
        (info.last_block_height, info.last_block_app_hash)
    }

    pub(crate) async fn init(&mut self, chain_id: &str) -> ResponseValue {
        let chain_id = chain_id.to_owned();
        self.ask(RequestValue::InitChain(RequestInitChain { chain_id, ..RequestInitChain::default() })).await
    }

    pub(crate) async fn check(&mut self, tx: &Bytes) -> (u32, String) {
        let request = RequestValue::CheckTx(RequestCheckTx { tx: tx.clone(), ..RequestCheckTx::default() });
        let ResponseValue::CheckTx(check) = self.ask(request).await else { panic!("no check") };
        (check.code, String::from_utf8(check.data.to_vec()).unwrap())
    }

    pub(crate) async fn propose(&mut self, height: u64) {
        let proposal = RequestProcessProposal {
            height: height.cast_signed(),
            hash: hash_of(height),
            time: time_of(height),
            ..RequestProcessProposal::default()
        };
        let answer = self.ask(RequestValue::ProcessProposal(proposal)).await;
        let ResponseValue::ProcessProposal(response) = answer else { panic!("no answer to a proposal") };
        assert_eq!(response.status, 1);
    }

    pub(crate) async fn finalize(&mut self, height: u64, txs: &[Bytes]) -> ResponseFinalizeBlock {
        match self.try_finalize(height, txs).await {
            ResponseValue::FinalizeBlock(finalized) => finalized,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn try_finalize(&mut self, height: u64, txs: &[Bytes]) -> ResponseValue {
        let block = RequestFinalizeBlock {
            height: height.cast_signed(),
            hash: hash_of(height),
            time: time_of(height),
            txs: txs.to_vec(),
            ..RequestFinalizeBlock::default()
        };
        self.ask(RequestValue::FinalizeBlock(block)).await
    }

    pub(crate) async fn commit(&mut self) -> ResponseValue {
        self.ask(RequestValue::Commit(RequestCommit {})).await
    }

    /// Finalizes and commits a block; returns its app hash.
    pub(crate) async fn block(&mut self, height: u64, txs: &[Bytes]) -> Bytes {
        let finalized = self.finalize(height, txs).await;
        assert!(matches!(self.commit().await, ResponseValue::Commit(_)));
        finalized.app_hash
    }
}

pub(crate) fn hash_of(height: u64) -> Bytes {
    Sha256::digest(height.to_be_bytes()).to_vec().into()
}

#[allow(clippy::unnecessary_wraps)]
fn time_of(height: u64) -> Option<Timestamp> {
    Some(Timestamp { seconds: 1_700_000_000 + height.cast_signed(), nanos: 5 })
}

/// A valid transaction of a party with its proof of work on a block.
pub(crate) fn transaction(height: u64, party: u8, input: &str) -> Bytes {
    transaction_of(rules().difficulty, height, party, input)
}

/// The same with work of these bits.
pub(crate) fn transaction_of(bits: u32, height: u64, party: u8, input: &str) -> Bytes {
    with_work(party, input, work(bits, &hex::encode(hash_of(height)), party, input))
}

pub(crate) fn with_work(party: u8, input: &str, pow: ProofOfWork) -> Bytes {
    encode(&signed(party, input, Some(pow))).into()
}
