//! The checks before the node (contract 5.2), one test row each. Transactions that must not reach a node use
//! the development node, which counts what it receives.

use mesh_testbed::{Answer, DevNode, NodeKind, on_both_nodes};
use mesh_tests::{Call, Rpc, assert_problem};
use proto_msgs::v2::{SubmissionType, SubmitTransactionRequest, Transaction, transaction::From as Sender};
use reqwest::Method;
use serde_json::{Value, json};

use crate::transactions::{Environment, body, hash, raw};

/// Sets a member of the transaction's JSON, or removes it.
fn changed(tx: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut tx = tx.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = tx.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => parent.insert(name.to_owned(), value),
        None => parent.remove(name),
    };
    tx
}

#[tokio::test]
async fn malformed_fields_are_refused_and_named_together() {
    let environment = Environment::start(DevNode::configure()).await;
    let good = body(&environment.node.transaction(1, "order").await);
    let text = |count: usize| Some(json!("a".repeat(count)));
    let cases = [
        ("/version", None, "tx.version"),
        ("/version", Some(json!(1)), "tx.version"),
        ("/pubKey", None, "tx.pubKey"),
        ("/pubKey", text(63), "tx.pubKey"),
        ("/pubKey", Some(json!("g".repeat(64))), "tx.pubKey"),
        ("/inputData", Some(json!("")), "tx.inputData"),
        ("/signature", None, "tx.signature is missing"),
        ("/signature/value", text(127), "tx.signature.value"),
    ];
    for (pointer, value, named) in cases {
        let tx = changed(&good, pointer, value.clone());
        for path in ["/transaction", "/transaction/check"] {
            let answer = environment.post(path, &json!({"tx": tx})).await;
            assert_problem(&answer, 400, 3, 10_015);
            assert!(answer.text().contains(named), "{path} {pointer} {value:?}: {answer:?}");
        }
    }
    let address = changed(&changed(&good, "/pubKey", None), "/address", text(40));
    let answer = environment.post("/transaction", &json!({"tx": address})).await;
    assert!(answer.status == 400 && answer.text().contains("tx.address is not supported"), "{answer:?}");
    let both = changed(&good, "/address", text(40));
    let answer = environment.post("/transaction", &json!({"tx": both})).await;
    assert_problem(&answer, 400, 3, 10_015);
    assert!(answer.text().contains("tx.address and tx.pubKey exclude each other"), "{answer:?}");
    let long = json!({"tx": {"pubKey": text(300), "signature": {"value": text(300)}}}).to_string();
    for (accepted, coding) in [("gzip", Some("gzip")), ("gzip;q=0", None)] {
        let request = environment.mesh.request(Method::POST, "/transaction").body(long.clone());
        let answer = Answer::to(request.header("accept-encoding", accepted)).await;
        assert_eq!((answer.status, answer.header("content-encoding")), (400, coding));
    }
    for (request, path) in [
        (json!({}), "/transaction"),
        (json!({}), "/transaction/raw"),
        (json!({"tx": ""}), "/transaction/raw/check"),
    ] {
        let answer = environment.post(path, &request).await;
        assert_problem(&answer, 400, 3, 10_015);
    }
    for (signature, of_signature) in [
        (None, &["tx.signature"][..]),
        (Some(json!({})), &["tx.signature.value", "tx.signature.algo", "tx.signature.version"]),
    ] {
        let tx = changed(&json!({"tx": {}}), "/tx/signature", signature);
        let answer = environment.post("/transaction", &tx).await;
        let details = answer.json()["details"].as_array().unwrap().clone();
        let field =
            |detail: &Value| detail["message"].as_str().unwrap().split(' ').next().unwrap().to_owned();
        let fields: Vec<_> = details.iter().map(field).collect();
        assert_eq!(fields, [&["tx.version", "tx.pubKey", "tx.inputData"], of_signature].concat());
        assert!(details.iter().all(|detail| detail["code"] == 10_015), "{details:?}");
    }
    environment.nothing_was_broadcast();
}

#[tokio::test]
async fn over_grpc_a_transaction_keeps_its_letters_and_its_mistakes_are_named_together() {
    let environment = Environment::start(DevNode::configure()).await;
    let rpc = Rpc::connect(&environment.mesh).await;
    let submit = |tx: &Transaction| {
        let r#type = SubmissionType::TypeAsync.into();
        Call::new("SubmitTransaction", &SubmitTransactionRequest { tx: Some(tx.clone()), r#type })
    };
    let mut tx = environment.node.transaction(1, "order").await;
    let signature = tx.signature.as_mut().unwrap();
    signature.value = signature.value.to_uppercase();
    let submitted = submit(&tx);
    let reply = rpc.call(&submitted).await.unwrap().into_inner();
    assert_eq!(submitted.json(&reply)["txHash"], hash(&tx));
    tx.input_data.clear();
    tx.signature.as_mut().unwrap().value = "zz".to_owned();
    for sender in ["xx", ""] {
        tx.from = Some(Sender::PubKey(sender.to_owned()));
        let refused = rpc.call(&submit(&tx)).await.unwrap_err();
        let details = String::from_utf8_lossy(refused.details()).into_owned();
        for field in ["tx.pubKey", "tx.inputData", "tx.signature.value"] {
            assert!(details.contains(field), "{field}: {details}");
        }
    }
}

on_both_nodes!(a_transaction_of_a_mebibyte_passes_and_one_byte_more_does_not);

async fn a_transaction_of_a_mebibyte_passes_and_one_byte_more_does_not(kind: NodeKind) {
    let environment = Environment::start_with(kind, DevNode::configure().without_checks()).await;
    let mut tx = environment.node.transaction(1, "order").await;
    let rest = mesh_transaction::encode(&tx).len();
    // The length prefix must fit the longer text.
    tx.input_data = vec![7; (1 << 20) - rest + "order".len() - 2].into();
    assert_eq!(mesh_transaction::encode(&tx).len(), 1 << 20);
    let post = async |tx: &Transaction| {
        let checked = environment.post("/transaction/raw/check", &json!({"tx": raw(tx)})).await;
        [checked, environment.post("/transaction", &json!({"tx": body(tx)})).await]
    };
    for answer in post(&tx).await {
        assert_eq!((answer.status, &answer.json()["success"]), (200, &json!(true)), "{answer:?}");
    }
    tx.input_data = vec![7; tx.input_data.len() + 1].into();
    for answer in post(&tx).await {
        assert_problem(&answer, 400, 3, 10_015);
    }
}
