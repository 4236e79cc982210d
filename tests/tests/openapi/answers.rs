//! The document's examples work on the demo network, and the answers conform to the document, also to
//! conditional and partial requests.

use mesh_demo::{Plan, write_history};
use mesh_testbed::{Database, Mesh};
use mesh_tests::{Events, MeshClient, say};

use crate::openapi::{Document, Operation, example};

/// Blocks of the demo network: enough for rows of all kinds and two short segments.
const BLOCKS: u64 = 210;
const SEGMENT: &str = "100";

#[tokio::test]
async fn answers_on_the_demo_network_are_as_documented_and_its_examples_work() {
    let database = Database::fresh().await;
    let plan = Plan { blocks: BLOCKS, ..Plan::default() };
    write_history(database.url(), &plan, |_, _| ()).await.unwrap();
    let mesh = Mesh::configure(&database).env("MESH_HISTORY_INTERVAL_BLOCKS", SEGMENT).start().await;
    let mesh_client = MeshClient::new(&mesh);
    mesh_client.until_first_segment().await;
    let document = Document::fetch(&mesh_client).await;
    let mut answers = 0;
    for operation in document.operations() {
        // A mesh without a node answers no operation of transactions.
        if operation.method == "POST" || operation.json["tags"][0] == "Trading" {
            continue;
        }
        // The usual segment length would take long to load.
        let target = example(&document, &operation, &[("toBlock", SEGMENT)]);
        if operation.is_stream() {
            let mut events = Events::open(&mesh_client, &target, &[]).await.unwrap();
            assert_eq!(events.event().await.name, "answer-0", "{target}");
            continue;
        }
        for (at, (name, value)) in variants(&operation).into_iter().enumerate() {
            let answer = mesh_client.send_with(&operation.method, &target, &[(name, value)]).await;
            assert!(at > 0 || answer.status == 200, "the example {target} gives {answer:?}");
            let complaint = document.complaint(&operation, &answer);
            assert_eq!(complaint, None, "{} {target} {name}: {value}: {answer:?}", operation.id);
            answers += 1;
        }
    }
    say(&format!("the demo network: {answers} requests as documented"));
}

/// Request headers that lead to an operation's other answers.
fn variants(operation: &Operation<'_>) -> Vec<(&'static str, &'static str)> {
    let mut variants = vec![("accept", "*/*")];
    if operation.json.pointer("/responses/412").is_some() {
        variants.extend([("if-match", "*"), ("if-match", "\"other\"")]);
    }
    if operation.json.pointer("/responses/304").is_some() {
        variants.push(("if-none-match", "*"));
    }
    let whole = &operation.json["responses"]["200"];
    if whole["headers"].get("Content-Disposition").is_some() && whole.get("content").is_some() {
        variants.push(("accept", "application/x-ndjson"));
    }
    if operation.json.pointer("/responses/206").is_some() {
        variants.extend([("range", "bytes=1-9"), ("range", "bytes=-5"), ("range", "bytes=999999999999-")]);
    }
    variants
}
