//! An application, and a client that plays the node.

use std::path::PathBuf;

use bytes::{Buf as _, Bytes, BytesMut};
use mesh_devnode::{Application, Base, ChainFile, Checks, serve_application};
use mesh_transaction::{ALGORITHM, Key, Network, Puzzle, SearchControl, SpamRules, encode, search};
use prost::Message as _;
use proto_msgs::v2::{ProofOfWork, Transaction, TxVersion, transaction::From as Sender};
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

const CHAIN: &str = "net-1";

/// Rules with little proof of work, a short window and a quota that no test reaches by accident.
pub(crate) fn rules() -> SpamRules {
    SpamRules { difficulty: 3, past_blocks: 5, tx_per_block: 1000, ..SpamRules::default() }
}

/// An application and one connection to it.
pub(crate) struct Fixture {
    folder: TempDir,
    pub(crate) application: Application,
    serving: JoinHandle<()>,
    stream: TcpStream,
    read: BytesMut,
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
        let network =
            Network { chain_id: CHAIN.into(), algorithm: ALGORITHM.into(), pow_prefix: String::new() };
        let file = folder.path().join("blocks");
        let application = Application::open(network, &file, Checks::All).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = application.clone();
        let serving = tokio::spawn(async move { match serve_application(listener, served).await {} });
        let stream = TcpStream::connect(address).await.unwrap();
        Self { folder, application, serving, stream, read: BytesMut::new() }
    }

    /// Aborts the application, and starts it again from its file.
    pub(crate) async fn crash(self) -> Self {
        let Self { folder, application, serving, stream, .. } = self;
        serving.abort();
        let _ = serving.await;
        drop((application, stream));
        Self::in_folder(folder).await
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("blocks")
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
        loop {
            let mut rest = &self.read[..];
            if let Ok(length) = prost::decode_length_delimiter(&mut rest)
                && rest.len() >= length
            {
                let head = self.read.len() - rest.len();
                self.read.advance(head);
                let message = self.read.split_to(length).freeze();
                return Response::decode(message).unwrap().value.unwrap();
            }
            assert!(self.stream.read_buf(&mut self.read).await.unwrap() > 0, "the application hung up");
        }
    }

    /// Height and app hash of the application's Info response.
    pub(crate) async fn info(&mut self) -> (i64, Bytes) {
        let ResponseValue::Info(info) = self.ask(RequestValue::Info(RequestInfo::default())).await else {
            panic!("no info")
        };
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
        let ResponseValue::ProcessProposal(response) =
            self.ask(RequestValue::ProcessProposal(proposal)).await
        else {
            panic!("no answer to a proposal")
        };
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
    let tid = format!("tid of {party} {input}");
    let puzzle = Puzzle::new("", &hex::encode(hash_of(height)), &tid);
    let nonce = search(&puzzle, bits, &SearchControl::default()).unwrap();
    with_work(party, input, tid, nonce)
}

pub(crate) fn with_work(party: u8, input: &str, tid: String, nonce: u64) -> Bytes {
    let key = Key::from_seed(&[party; 32]);
    let tx = Transaction {
        input_data: Bytes::from(input.to_owned()),
        signature: key.sign(TxVersion::V3, CHAIN, input.as_bytes(), ALGORITHM),
        version: TxVersion::V3.into(),
        from: Some(Sender::PubKey(key.public())),
        pow: Some(ProofOfWork { tid, nonce }),
    };
    encode(&tx).into()
}
