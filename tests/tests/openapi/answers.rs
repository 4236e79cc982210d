//! Answers on the demo network conform to the document: every operation with all its parameters.

use std::collections::BTreeMap;

use mesh_demo::{Plan, write_history};
use mesh_testbed::{Answer, Database, Mesh};
use mesh_tests::{client::MeshClient, events::Events, say};

use crate::openapi::{
    document::{Document, Operation},
    requests::{Values, first_text},
};

/// Blocks of the demo network: enough for rows of all kinds and two short segments.
const BLOCKS: u64 = 210;
const SEGMENT: &str = "100";

/// Operations that no service answers in a mesh without a node, or that need a body.
fn is_of_transactions(operation: &Operation<'_>) -> bool {
    operation.json["tags"][0] == "Trading"
}

#[tokio::test]
async fn answers_on_the_demo_network_are_as_documented_and_its_examples_work() {
    let database = Database::fresh().await;
    let plan = Plan { blocks: BLOCKS, ..Plan::default() };
    write_history(database.url(), &plan, |_, _| ()).await.unwrap();
    let mesh = Mesh::configure(&database).env("MESH_HISTORY_INTERVAL_BLOCKS", SEGMENT).start().await;
    let mesh_client = MeshClient::new(&mesh);
    let values = Values::read(&database).await;
    assert_documented(&mesh_client, values).await;

    let document = Document::fetch(&mesh_client).await;
    let mut examples = Values::default();
    // The usual segment length would take long to load.
    examples.put("toBlock", SEGMENT);
    let reads = document.operations().into_iter();
    for operation in reads.filter(|operation| operation.method != "POST" && !is_of_transactions(operation)) {
        let example = examples.targets(&document, &operation).swap_remove(0);
        if operation.is_stream() {
            let mut events = Events::open(&mesh_client, &example, &[]).await.unwrap();
            assert_eq!(events.event().await.name, "answer-0", "{example}");
            continue;
        }
        let answer = mesh_client.get(&example).await;
        assert_eq!(answer.status, 200, "the example {example} gives {answer:?}");
    }
}

/// Requests every operation and checks its answers against the document; each must succeed at least once.
async fn assert_documented(mesh_client: &MeshClient, mut values: Values) {
    mesh_client.until_first_segment().await;
    let segments = mesh_client.get("/api/v2/networkhistory/segments").await.json();
    values.put("toBlock", &first_text(&segments, "toHeight").unwrap());
    let document = Document::fetch(mesh_client).await;
    let (mut wrong, mut counts) = (Vec::new(), BTreeMap::new());
    for operation in document.operations() {
        if operation.method == "POST" || operation.is_stream() {
            continue;
        }
        // Further pages are requested with the cursors of the first.
        let first = values.targets(&document, &operation).swap_remove(0);
        let first = Answer::to(mesh_client.request(operation.method.parse().unwrap(), &first)).await;
        let json = serde_json::from_slice(&first.body).unwrap_or_default();
        for (name, member) in [("pagination.after", "startCursor"), ("pagination.before", "endCursor")] {
            if let Some(cursor) = first_text(&json, member).filter(|cursor| !cursor.is_empty()) {
                values.put(name, &cursor);
            }
        }
        for target in values.targets(&document, &operation) {
            for (name, value) in variants(&operation) {
                let request =
                    mesh_client.request(operation.method.parse().unwrap(), &target).header(name, value);
                let answer = Answer::to(request).await;
                *counts.entry((operation.id.to_owned(), answer.status)).or_insert(0) += 1;
                if let Some(complaint) = document.complaint(&operation, &answer) {
                    wrong.push(format!("{} {target} {name}: {value}: {complaint}: {answer:?}", operation.id));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} answers:\n{}", wrong.len(), wrong.join("\n"));
    for operation in document.operations() {
        let is_asked =
            operation.method != "POST" && !operation.is_stream() && !is_of_transactions(&operation);
        let succeeded = counts.contains_key(&(operation.id.to_owned(), 200));
        assert!(!is_asked || succeeded, "{} never succeeded: {counts:?}", operation.id);
    }
    say(&format!("the demo network: {} requests as documented", counts.values().sum::<i32>()));
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
