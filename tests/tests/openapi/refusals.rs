//! The answers of all cases conform to the document, refusals and watches included; so do those of stopped
//! services, and what the document does not list is found.

use mesh_testbed::Answer;
use mesh_tests::{Events, MeshClient, cases, file_name, fixture};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proto_msgs::{Contract, Method};
use serde_json::Value;

use crate::openapi::{Document, example};

#[tokio::test]
async fn every_case_is_answered_as_documented() {
    let mesh_client = MeshClient::fixture().await;
    let document = Document::fetch(&mesh_client).await;
    let (mut complaints, mut answers, mut watches_refused) = (Vec::new(), 0, 0);
    let mut check = |id: &str, what: &str, answer: &Answer| {
        answers += 1;
        let complaint = document.complaint(&document.operation(id), answer);
        complaints.extend(complaint.map(|complaint| format!("{what}: {complaint}: {answer:?}")));
    };
    for row in Contract::get().operations() {
        let file = &cases::files()[&file_name(&row.name)];
        let path = document.operation(&row.name).path;
        if row.method == Method::Post {
            let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(3 << 20));
            let bodies = file.refusals.iter().flat_map(|refusals| refusals.bodies());
            for body in bodies.chain([large, "{}".to_owned()]) {
                check(&row.name, &body[..body.len().min(100)], &mesh_client.post(path, &body).await);
            }
            continue;
        }
        let cases = file.cases.iter().map(|case| case.request.path.clone());
        let refused = file.refusals.iter().flat_map(|refusals| refusals.paths());
        for target in cases.chain(refused).chain([format!("{path}?x={}", "x".repeat(9000))]) {
            check(&row.name, &target, &mesh_client.get(&target).await);
            let read = format!("/watch?read={}", utf8_percent_encode(&target, NON_ALPHANUMERIC));
            if let Err(refusal) = Events::open(&mesh_client, &read, &[]).await {
                watches_refused += 1;
                check("Watch", &read, &refusal);
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(answers > 600 && watches_refused > 200, "{answers} answers, {watches_refused} watches refused");
}

#[test]
fn stopped_services_are_reported_as_documented() {
    fixture::exclusively(async |_, mesh| {
        for service in ["query", "node-info", "export"] {
            mesh.service(service).kill().await;
        }
        let mesh_client = MeshClient::new(mesh);
        let document = Document::fetch(&mesh_client).await;
        let mut complaints = Vec::new();
        for operation in document.operations().into_iter().filter(|operation| operation.method != "POST") {
            let target = example(&document, &operation, &[]);
            let answer = mesh_client.send(&operation.method, &target).await;
            let is_page = operation.json["tags"][0] == "Gateway" && !operation.is_stream();
            assert_eq!(answer.status, if is_page { 200 } else { 503 }, "{target}: {answer:?}");
            let complaint = document.complaint(&operation, &answer);
            complaints.extend(complaint.map(|complaint| format!("{target}: {complaint}: {answer:?}")));
        }
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    });
}

#[tokio::test]
async fn undocumented_answers_are_found() {
    let mesh_client = MeshClient::fixture().await;
    let document = Document::fetch(&mesh_client).await;
    let operation = document.operation("GetWithdrawal");
    let answer = mesh_client.get(&format!("/api/v2/withdrawal/{}", fixture::WITHDRAWAL)).await;
    assert_eq!(document.complaint(&operation, &answer), None);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut json = answer.json();
        change(&mut json);
        Answer { body: json.to_string().into(), ..answer.clone() }
    };
    for other in [
        Answer { status: 418, ..answer.clone() },
        Answer { status: 404, ..answer.clone() },
        changed(&|json| json["more"] = 1.into()),
        changed(&|json| json["withdrawal"]["createdTimestamp"] = 1.into()),
        changed(&|json| json["withdrawal"]["amount"] = "1e3".into()),
        changed(&|json| json["withdrawal"]["status"] = "STATUS_LOST".into()),
        changed(&|json| json["withdrawal"]["ext"]["btc"] = "x".into()),
        changed(&|json| _ = json["withdrawal"].as_object_mut().unwrap().remove("ref").unwrap()),
    ] {
        assert!(document.complaint(&operation, &other).is_some(), "{other:?}");
    }
    let refused = mesh_client.get("/api/v2/withdrawal/zz").await;
    assert_eq!(document.complaint(&operation, &refused), None);
    // The application number of another operation.
    let other = document.operation("GetOracleSpec");
    assert!(document.complaint(&other, &refused).is_some());
    let mut headed = answer.clone();
    headed.headers.insert("allow", "GET".parse().unwrap());
    assert!(document.complaint(&operation, &headed).is_some());
}
