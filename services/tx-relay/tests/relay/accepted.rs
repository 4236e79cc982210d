//! Good transactions.

use bytes::Bytes;
use mesh_problem::Code;
use mesh_transaction::encode;
use proto_msgs::v2::{
    CheckRawTransactionRequest, CheckTransactionReply, CheckTransactionRequest, SubmissionType::*,
    SubmitTransactionReply, SubmitTransactionRequest, get_transaction_reply::Status,
};

use crate::stage::{Setup, Stage, accepted};

#[tokio::test]
async fn each_type_says_what_it_waited_for() {
    let mut stage = Stage::set(Setup::default()).await;
    let [handed, checked, executed] = ["1", "2", "3"].map(|input| stage.transaction(input));
    assert_eq!(stage.submit(&handed, TypeAsync).await.unwrap(), accepted(&handed));
    assert_eq!(stage.submit(&checked, TypeUnspecified).await.unwrap(), accepted(&checked));
    assert_eq!(stage.status(&checked).await, Status::Pending);
    stage.tick();
    let reply = stage.submit(&executed, TypeCommit).await.unwrap();
    assert!(reply.height > 1);
    assert_eq!(reply, SubmitTransactionReply { height: reply.height, ..accepted(&executed) });
    let fate = stage.fate(&executed).await;
    assert_eq!((fate.status(), fate.height, fate.code), (Status::Included, reply.height, 0));
    assert_eq!(fate.tx_hash, reply.tx_hash);
    assert_eq!(stage.status(b"nobody has seen this").await, Status::Unknown);
}

#[tokio::test]
async fn a_request_with_fields_is_encoded_as_the_chain_hashes_it() {
    let stage = Stage::set(Setup::default()).await;
    let fields = stage.signed("order");
    let encoded = Bytes::from(encode(&fields));
    let check = stage.ask(&CheckTransactionRequest { tx: Some(fields.clone()) }).await.unwrap();
    assert_eq!(check, CheckTransactionReply { success: true, ..CheckTransactionReply::default() });
    assert_eq!(stage.ask(&CheckRawTransactionRequest { tx: encoded.clone() }).await.unwrap(), check);
    assert_eq!(stage.broadcasts(&encoded), 0);
    let request = SubmitTransactionRequest { tx: Some(fields), r#type: TypeSync.into() };
    assert_eq!(stage.ask(&request).await.unwrap(), accepted(&encoded));
    assert_eq!(stage.node().chain().waiting(1).2, [encoded]);
}

#[tokio::test]
async fn another_node_gets_what_no_byte_of_has_left() {
    let setup = Setup { relays: 0, ..Setup::default() };
    let mut stage = Stage::set(setup).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let urls = format!("http://{gone}, http://{}", stage.address());
    stage.start_relay(&[("MESH_NODE_URL", urls)]).await;
    let tx = stage.transaction("order");
    assert_eq!(stage.sync(&tx).await.unwrap(), accepted(&tx));
    assert_eq!(stage.broadcasts(&tx), 1);
}

#[tokio::test]
async fn signatures_are_checked_here_when_that_is_wanted() {
    let verify = ("MESH_RELAY_VERIFY_SIGNATURE", "true".to_owned());
    let stage = Stage::set(Setup { env: vec![verify], ..Setup::default() }).await;
    let good = stage.transaction("order");
    let mut bad = stage.signed("order");
    bad.input_data = "another".into();
    let request = SubmitTransactionRequest { tx: Some(bad), r#type: TypeSync.into() };
    let problem = stage.ask(&request).await.unwrap_err();
    assert_eq!((problem.code, problem.number()), (Code::InvalidArgument, 10_015));
    assert!(problem.details[0].message.starts_with("tx.signature.value "), "{problem}");
    assert_eq!(stage.sync(&good).await.unwrap(), accepted(&good));
}
