//! Refusals conform to the document: every parameter malformed and left out, sizes, bodies, stopped services.

use mesh_testbed::Answer;
use mesh_tests::{client::MeshClient, events::Events, fixture};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::openapi::{
    document::{Document, Operation},
    requests::Values,
};

/// Sends a request; returns the differences of its answer from the document.
async fn check_request(
    document: &Document,
    operation: &Operation<'_>,
    request: reqwest::RequestBuilder,
    what: &str,
) -> Option<String> {
    let answer = Answer::to(request).await;
    let complaint = document.complaint(operation, &answer);
    complaint.map(|complaint| format!("{} {what}: {complaint}: {answer:?}", operation.id))
}

#[tokio::test]
async fn invalid_parameters_are_refused_as_documented() {
    let mesh_client = MeshClient::fixture().await;
    let document = Document::fetch(&mesh_client).await;
    let values = Values::read(&fixture::database().await).await;
    let mut complaints = Vec::new();
    let (mut refused, mut watches_refused) = (0, 0);
    let is_plain = |operation: &Operation<'_>| operation.method != "POST" && !operation.is_stream();
    for operation in document.operations().into_iter().filter(is_plain) {
        let base = values.targets(&document, &operation).swap_remove(0);
        let mut targets = vec![operation.path.to_owned(), format!("{base}{}pretty=maybe", joint(&base))];
        for parameter in document.parameters(&operation) {
            for text in ["%00", "-1", "x'y", "99999999999999999999", ""] {
                targets.push(match parameter.place {
                    "path" => operation.path.replace(&format!("{{{}}}", parameter.name), text),
                    "query" => {
                        let bare = without(&base, parameter.name);
                        format!("{bare}{}{}={text}", joint(&bare), parameter.name)
                    }
                    _ => continue,
                });
            }
            targets.push(format!("{base}{}{name}=1&{name}=1", joint(&base), name = parameter.name));
        }
        targets.push(format!("{base}{}x={}", joint(&base), "x".repeat(9000)));
        for target in targets {
            let answer = Answer::to(mesh_client.request(operation.method.parse().unwrap(), &target)).await;
            refused += usize::from(answer.status >= 400);
            let complaint = document.complaint(&operation, &answer);
            let shown = &target[..target.len().min(200)];
            complaints.extend(complaint.map(|complaint| format!("{shown}: {complaint}: {answer:?}")));
            let watch = format!("/watch?read={}", utf8_percent_encode(&target, NON_ALPHANUMERIC));
            if let Err(refusal) = Events::open(&mesh_client, &watch, &[]).await {
                watches_refused += 1;
                let complaint = document.complaint(&document.operation("Watch"), &refusal);
                complaints.extend(complaint.map(|complaint| format!("{watch}: {complaint}: {refusal:?}")));
            }
        }
        let large = mesh_client
            .request(operation.method.parse().unwrap(), &base)
            .header("x-large", "x".repeat(20_000));
        complaints.extend(check_request(&document, &operation, large, "with large headers").await);
        let unwanted =
            mesh_client.request(operation.method.parse().unwrap(), &base).body(vec![b' '; 3 << 20]);
        complaints.extend(check_request(&document, &operation, unwanted, "with a large body").await);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(refused > 200, "only {refused} requests were refused");
    assert!(watches_refused > 200, "only {watches_refused} watches were refused");
}

fn joint(target: &str) -> char {
    if target.contains('?') { '&' } else { '?' }
}

/// A target without one of its parameters.
fn without(target: &str, name: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let remaining: Vec<&str> =
        query.split('&').filter(|pair| !pair.starts_with(&format!("{name}="))).collect();
    if remaining.is_empty() { path.to_owned() } else { format!("{path}?{}", remaining.join("&")) }
}

#[tokio::test]
async fn bodies_are_answered_as_documented() {
    let mesh_client = MeshClient::fixture().await;
    let document = Document::fetch(&mesh_client).await;
    let mut complaints = Vec::new();
    for operation in document.operations().into_iter().filter(|operation| operation.method == "POST") {
        let examples = operation.json.pointer("/requestBody/content/application~1json/examples");
        let examples = examples.and_then(Value::as_object).unwrap_or_else(|| panic!("{}", operation.id));
        let mut bodies: Vec<String> = examples.values().map(|example| example["value"].to_string()).collect();
        bodies.extend(["", "{", "[]", "null", r#"{"type":"TYPE_FOO"}"#, r#"{"tx":7}"#].map(str::to_owned));
        bodies.push(format!(r#"{{"x":"{}"}}"#, "x".repeat(3 << 20)));
        for body in bodies {
            let what = body[..body.len().min(100)].to_owned();
            let request = mesh_client.request(reqwest::Method::POST, operation.path);
            let request = request.header("content-type", "application/json").body(body);
            complaints.extend(check_request(&document, &operation, request, &what).await);
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn stopped_services_are_reported_as_documented() {
    fixture::exclusively(async |database, mesh| {
        for service in ["query", "node-info", "export"] {
            mesh.service(service).kill().await;
        }
        let mesh_client = MeshClient::new(mesh);
        let document = Document::fetch(&mesh_client).await;
        let values = Values::read(database).await;
        let mut complaints = Vec::new();
        for operation in document.operations().into_iter().filter(|operation| operation.method != "POST") {
            let target = values.targets(&document, &operation).swap_remove(0);
            let answer = Answer::to(mesh_client.request(operation.method.parse().unwrap(), &target)).await;
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
    let withdrawal = |json: &mut Value| json["withdrawal"].as_object_mut().unwrap().clone();
    for other in [
        Answer { status: 418, ..answer.clone() },
        Answer { status: 404, ..answer.clone() },
        changed(&|json| json["more"] = 1.into()),
        changed(&|json| json["withdrawal"]["createdTimestamp"] = 1.into()),
        changed(&|json| json["withdrawal"]["amount"] = "1e3".into()),
        changed(&|json| json["withdrawal"]["status"] = "STATUS_LOST".into()),
        changed(&|json| json["withdrawal"]["ext"]["btc"] = "x".into()),
        changed(&|json| {
            let mut less = withdrawal(json);
            less.remove("ref");
            json["withdrawal"] = less.into();
        }),
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
