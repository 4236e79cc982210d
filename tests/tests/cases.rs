//! The cases: requests and their expected answers, one data file per operation, all against one mesh over
//! `cases/fixture.sql`. A test lists the contract's operations that have no file.

use std::collections::BTreeSet;

use mesh_oracles::{Oracle, Question};
use mesh_testbed::Answer;
use mesh_tests::{
    Case, Expected, MeshClient, Refusals, cases::files, difference, file_name, fixture, lack, problem,
};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use proto_msgs::{Contract, Format, Method, OperationInfo};

/// The first difference between an answer and the expected one, or between an error and the contract's form of errors.
fn complaint(expected: &Expected, answer: &Answer) -> Option<String> {
    if answer.status != expected.status {
        return Some(format!("the status is {}", answer.status));
    }
    if answer.status >= 400
        && let Err(complaint) = problem::read(answer)
    {
        return Some(complaint);
    }
    for (name, value) in &expected.headers {
        if answer.header(name) != value.as_deref() {
            return Some(format!("the header {name} is {:?}", answer.header(name)));
        }
    }
    if expected.body.is_none() && expected.has.is_none() {
        return None;
    }
    let body = answer.json();
    let whole = expected.body.as_ref().and_then(|whole| difference(&body, whole));
    whole.or_else(|| lack(&body, expected.has.as_ref()?))
}

async fn run(mesh: &MeshClient, case: &Case) -> Answer {
    let method = case.request.method.as_deref().unwrap_or("GET");
    let method: reqwest::Method = method.parse().expect("a case names a method");
    let mut request = mesh.request(method, &case.request.path);
    for (name, value) in &case.request.headers {
        request = request.header(name, value);
    }
    request = match (&case.request.body, &case.request.text) {
        (Some(body), _) => request.json(body),
        (None, Some(text)) => request.header("content-type", "application/json").body(text.clone()),
        (None, None) => request,
    };
    Answer::to(request).await
}

#[tokio::test]
async fn every_case_holds() {
    let (unsealed, sealed) = (MeshClient::fixture().await, MeshClient::sealed_fixture().await);
    let mut wrong = Vec::new();
    let mut count = 0;
    for (operation, file) in files() {
        for case in &file.cases {
            count += 1;
            let answer = run(if case.sealed { &sealed } else { &unsealed }, case).await;
            if let Some(complaint) = complaint(&case.expect, &answer) {
                wrong.push(format!("{operation}: {}: {complaint}\n  {answer:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases do not hold:\n{}", wrong.len(), wrong.join("\n"));
}

/// The oracles, which compute the answers of the other suites, are right about the cases, whose answers are
/// written by hand.
#[tokio::test]
async fn every_oracle_gives_the_answers_of_its_cases() {
    let database = fixture::database().await;
    let oracle = Oracle::open(database.connect().await).await.expect("the oracles are SQL");
    let (mut compared, mut wrong) = (BTreeSet::new(), Vec::new());
    for (name, file) in files() {
        let answered = file.cases.iter().filter(|case| case.expect.status == 200 && !case.sealed);
        for (case, body) in answered.filter_map(|case| Some((case, case.expect.body.as_ref()?))) {
            let question = Question::read(&case.request.path);
            let question = question.filter(|question| mesh_oracles::knows(&question.operation.name));
            let Some(question) = question.filter(|question| !question.operation.follows_node) else {
                continue;
            };
            let answer = oracle.answer(&question).await.expect("the oracle answers");
            let difference = difference(&answer.unwrap_or_default(), body);
            wrong.extend(difference.map(|difference| format!("{name}: {}: {difference}", case.name)));
            compared.insert(name.clone());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared.len() >= 12, "{compared:?}");
}

#[tokio::test]
async fn every_refusal_holds() {
    let mesh = MeshClient::fixture().await;
    let operations = Contract::get().operations();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (name, file) in files() {
        let operation = operations.iter().find(|row| file_name(&row.name) == name).expect("it is declared");
        for refusals in &file.refusals {
            for path in refusals.paths() {
                count += 1;
                let complaint = not_refused(refusals, &mesh.get(&path).await);
                wrong.extend(complaint.map(|complaint| format!("{path}: {complaint}")));
            }
            for body in refusals.bodies() {
                count += 1;
                let complaint = not_refused(refusals, &mesh.post(&operation.template(), &body).await);
                wrong.extend(complaint.map(|complaint| format!("{name}: {body}: {complaint}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} refusals do not hold:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 200, "only {count} requests were refused");
}

/// Why an answer is not the expected refusal, if it is not.
fn not_refused(refusals: &Refusals, answer: &Answer) -> Option<String> {
    if answer.status != 400 {
        return Some(format!("the status is {}", answer.status));
    }
    let refusal = match problem::read(answer) {
        Ok(refusal) => refusal,
        Err(complaint) => return Some(complaint),
    };
    let is_said = refusals.reason.as_ref().is_none_or(|reason| *reason == refusal.message)
        && refusals.names.as_ref().is_none_or(|field| refusal.inner.contains(field))
        && (!refusals.names_value || (1..=256).contains(&refusal.inner.len()));
    ((refusal.code, refusal.number) != (3, refusals.number) || !is_said).then(|| format!("{refusal:?}"))
}

#[test]
fn every_operation_of_the_contract_has_a_file_and_every_file_an_operation() {
    let operations: BTreeSet<String> =
        Contract::get().operations().iter().map(|row| file_name(&row.name)).collect();
    let files: BTreeSet<String> = files().into_keys().collect();
    let alone: Vec<_> = operations.symmetric_difference(&files).collect();
    assert!(alone.is_empty(), "operations without a file in tests/cases, or files without: {alone:?}");
}

#[test]
fn every_refusal_of_a_parameter_that_the_contract_numbers_has_a_case() {
    let files = files();
    for operation in Contract::get().operations() {
        let file = &files[&file_name(&operation.name)];
        let of_cases = file.cases.iter().filter_map(|case| case.expect.number());
        let of_refusals = file.refusals.iter().map(|refusals| refusals.number);
        let numbers: BTreeSet<i64> = of_cases.chain(of_refusals).collect();
        for (parameter, number) in refusals(operation) {
            let is_there = numbers.contains(&i64::from(number));
            assert!(is_there, "{}: no case of {number} ({parameter})", operation.name);
        }
    }
}

/// Application numbers with which an operation's parameters are refused, each with the name of one parameter.
fn refusals(operation: &OperationInfo) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    match operation.method {
        Method::Get => leaves(&operation.request, 10015, &mut found),
        Method::Post => found.push(("the body".to_owned(), 10015)),
    }
    found
}

/// The scalar fields of a message; one without an application number inherits that of the field that contains
/// its message.
fn leaves(message: &MessageDescriptor, inherited: u32, found: &mut Vec<(String, u32)>) {
    for field in message.fields() {
        let rule = Contract::get().rule(&field);
        let number = rule.invalid.unwrap_or(inherited);
        let name = field.json_name().to_owned();
        found.extend(rule.missing.map(|number| (name.clone(), number)));
        match field.kind() {
            Kind::Message(inner) => leaves(&inner, number, found),
            _ if can_be_malformed(&field) => found.push((name, number)),
            _ => {}
        }
    }
}

fn can_be_malformed(field: &FieldDescriptor) -> bool {
    let rule = Contract::get().rule(field);
    field.kind() != Kind::String || rule.format != Format::Any || rule.max_chars.is_some()
}
