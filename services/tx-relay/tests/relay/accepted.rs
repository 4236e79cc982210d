//! Transactions that the node accepts.

use bytes::Bytes;
use mesh_problem::Code;
use mesh_testbed::{NodeKind, TlsFront, on_both_nodes};
use mesh_transaction::{TxHash, encode};
use proto_msgs::v2::{
    CheckRawTransactionRequest, CheckTransactionReply, CheckTransactionRequest, SubmissionType::*,
    SubmitTransactionReply, SubmitTransactionRequest, get_transaction_reply::Status,
};

use crate::fixture::{Fixture, Setup, accepted};

on_both_nodes!(
    each_type_returns_the_result_of_its_step,
    a_request_with_fields_is_encoded_as_the_chain_hashes_it,
    a_submission_that_was_not_sent_goes_to_the_next_node,
    a_hosted_node_is_reached_over_tls_with_its_password,
    signatures_are_checked_when_that_is_configured,
);

async fn each_type_returns_the_result_of_its_step(kind: NodeKind) {
    let mut fixture = Fixture::start(Setup::with_blocks(kind)).await;
    let broadcast = fixture.transaction("1").await;
    let checked = fixture.transaction("2").await;
    let executed = fixture.transaction("3").await;
    assert_eq!(fixture.submit(&broadcast, TypeAsync).await.unwrap(), accepted(&broadcast));
    assert_eq!(fixture.submit(&checked, TypeUnspecified).await.unwrap(), accepted(&checked));
    match kind {
        NodeKind::Development => assert_eq!(fixture.status(&checked).await, Status::Pending),
        // CometBFT makes blocks at its own interval.
        NodeKind::Cometbft => {
            assert!([Status::Pending, Status::Included].contains(&fixture.status(&checked).await));
        }
    }
    fixture.start_blocks();
    let reply = fixture.submit(&executed, TypeCommit).await.unwrap();
    assert!(reply.height > 1);
    assert_eq!(reply, SubmitTransactionReply { height: reply.height, ..accepted(&executed) });
    let found = fixture.get_transaction(&executed).await;
    assert_eq!((found.status(), found.height, found.code), (Status::Included, reply.height, 0));
    assert_eq!(found.tx_hash, reply.tx_hash);
    assert_eq!(fixture.status(b"a transaction that was not sent").await, Status::Unknown);
    for tx in [&broadcast, &checked, &executed] {
        assert_eq!(fixture.node.included(&TxHash::of(tx)).await, *tx);
    }
}

async fn a_request_with_fields_is_encoded_as_the_chain_hashes_it(kind: NodeKind) {
    let mut fixture = Fixture::start(Setup::with_blocks(kind)).await;
    let fields = fixture.signed("order").await;
    let encoded = Bytes::from(encode(&fields));
    let check = fixture.ask(&CheckTransactionRequest { tx: Some(fields.clone()) }).await.unwrap();
    assert_eq!(check, CheckTransactionReply { success: true, ..CheckTransactionReply::default() });
    assert_eq!(fixture.ask(&CheckRawTransactionRequest { tx: encoded.clone() }).await.unwrap(), check);
    fixture.assert_broadcasts(&encoded, 0);
    let request = SubmitTransactionRequest { tx: Some(fields), r#type: TypeSync.into() };
    assert_eq!(fixture.ask(&request).await.unwrap(), accepted(&encoded));
    fixture.start_blocks();
    assert_eq!(fixture.node.included(&TxHash::of(&encoded)).await, encoded);
}

async fn a_submission_that_was_not_sent_goes_to_the_next_node(kind: NodeKind) {
    let mut fixture = Fixture::start(Setup { relays: 0, ..Setup::new(kind) }).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let urls = format!("http://{gone}, {}", fixture.node.url());
    fixture.start_relay(&[("MESH_NODE_URL", urls)]).await;
    let tx = fixture.transaction("order").await;
    assert_eq!(fixture.sync(&tx).await.unwrap(), accepted(&tx));
    fixture.assert_broadcasts(&tx, 1);
}

async fn a_hosted_node_is_reached_over_tls_with_its_password(kind: NodeKind) {
    let mut fixture = Fixture::start(Setup { relays: 0, ..Setup::new(kind) }).await;
    let folder = tempfile::tempdir().unwrap();
    let front = TlsFront::start(&fixture.node.url(), folder.path()).await;
    let url = format!("https://reader:canary%2Fword@{}/", front.address);
    let ca = front.ca.to_string_lossy().into_owned();
    fixture.start_relay(&[("MESH_NODE_URL", url), ("SSL_CERT_FILE", ca)]).await;
    fixture.await_readiness(200).await;
    let tx = fixture.transaction("order").await;
    assert_eq!(fixture.sync(&tx).await.unwrap(), accepted(&tx));
    assert!(front.received().contains(" Basic cmVhZGVyOmNhbmFyeS93b3Jk\r\n"));
    assert!(!fixture.relays[0].log().contains("canary"));
}

async fn signatures_are_checked_when_that_is_configured(kind: NodeKind) {
    let fixture = Fixture::start(Setup::new(kind).env("MESH_RELAY_VERIFY_SIGNATURE", "true")).await;
    let good = fixture.transaction("order").await;
    let mut bad = fixture.signed("order").await;
    bad.input_data = "another".into();
    let request = SubmitTransactionRequest { tx: Some(bad), r#type: TypeSync.into() };
    let problem = fixture.ask(&request).await.unwrap_err();
    assert_eq!((problem.code, problem.number()), (Code::InvalidArgument, 10_015));
    assert!(problem.details[0].message.starts_with("tx.signature.value "), "{problem}");
    assert_eq!(fixture.sync(&good).await.unwrap(), accepted(&good));
}
