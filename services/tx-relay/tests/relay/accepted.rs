//! Good transactions.

use bytes::Bytes;
use mesh_problem::Code;
use mesh_testbed::{NodeKind, on_both_nodes};
use mesh_transaction::{TxHash, encode};
use proto_msgs::v2::{
    CheckRawTransactionRequest, CheckTransactionReply, CheckTransactionRequest, SubmissionType::*,
    SubmitTransactionReply, SubmitTransactionRequest, get_transaction_reply::Status,
};

use crate::stage::{Setup, Stage, accepted};

on_both_nodes!(
    each_type_says_what_it_waited_for,
    a_request_with_fields_is_encoded_as_the_chain_hashes_it,
    another_node_gets_what_no_byte_of_has_left,
    signatures_are_checked_here_when_that_is_wanted,
);

async fn each_type_says_what_it_waited_for(kind: NodeKind) {
    let mut stage = Stage::set(Setup::with_blocks(kind)).await;
    let handed = stage.transaction("1").await;
    let checked = stage.transaction("2").await;
    let executed = stage.transaction("3").await;
    assert_eq!(stage.submit(&handed, TypeAsync).await.unwrap(), accepted(&handed));
    assert_eq!(stage.submit(&checked, TypeUnspecified).await.unwrap(), accepted(&checked));
    match kind {
        NodeKind::Development => assert_eq!(stage.status(&checked).await, Status::Pending),
        // It does not wait for us.
        NodeKind::Cometbft => {
            assert!([Status::Pending, Status::Included].contains(&stage.status(&checked).await));
        }
    }
    stage.tick();
    let reply = stage.submit(&executed, TypeCommit).await.unwrap();
    assert!(reply.height > 1);
    assert_eq!(reply, SubmitTransactionReply { height: reply.height, ..accepted(&executed) });
    let fate = stage.fate(&executed).await;
    assert_eq!((fate.status(), fate.height, fate.code), (Status::Included, reply.height, 0));
    assert_eq!(fate.tx_hash, reply.tx_hash);
    assert_eq!(stage.status(b"nobody has seen this").await, Status::Unknown);
    for tx in [&handed, &checked, &executed] {
        assert_eq!(stage.node.included(&TxHash::of(tx)).await, *tx);
    }
}

async fn a_request_with_fields_is_encoded_as_the_chain_hashes_it(kind: NodeKind) {
    let mut stage = Stage::set(Setup::with_blocks(kind)).await;
    let fields = stage.signed("order").await;
    let encoded = Bytes::from(encode(&fields));
    let check = stage.ask(&CheckTransactionRequest { tx: Some(fields.clone()) }).await.unwrap();
    assert_eq!(check, CheckTransactionReply { success: true, ..CheckTransactionReply::default() });
    assert_eq!(stage.ask(&CheckRawTransactionRequest { tx: encoded.clone() }).await.unwrap(), check);
    stage.was_broadcast(&encoded, 0);
    let request = SubmitTransactionRequest { tx: Some(fields), r#type: TypeSync.into() };
    assert_eq!(stage.ask(&request).await.unwrap(), accepted(&encoded));
    stage.tick();
    assert_eq!(stage.node.included(&TxHash::of(&encoded)).await, encoded);
}

async fn another_node_gets_what_no_byte_of_has_left(kind: NodeKind) {
    let mut stage = Stage::set(Setup { relays: 0, ..Setup::before(kind) }).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let urls = format!("http://{gone}, {}", stage.node.url());
    stage.start_relay(&[("MESH_NODE_URL", urls)]).await;
    let tx = stage.transaction("order").await;
    assert_eq!(stage.sync(&tx).await.unwrap(), accepted(&tx));
    stage.was_broadcast(&tx, 1);
}

async fn signatures_are_checked_here_when_that_is_wanted(kind: NodeKind) {
    let verify = ("MESH_RELAY_VERIFY_SIGNATURE", "true".to_owned());
    let stage = Stage::set(Setup { env: vec![verify], ..Setup::before(kind) }).await;
    let good = stage.transaction("order").await;
    let mut bad = stage.signed("order").await;
    bad.input_data = "another".into();
    let request = SubmitTransactionRequest { tx: Some(bad), r#type: TypeSync.into() };
    let problem = stage.ask(&request).await.unwrap_err();
    assert_eq!((problem.code, problem.number()), (Code::InvalidArgument, 10_015));
    assert!(problem.details[0].message.starts_with("tx.signature.value "), "{problem}");
    assert_eq!(stage.sync(&good).await.unwrap(), accepted(&good));
}
