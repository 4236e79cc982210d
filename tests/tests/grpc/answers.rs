//! Every operation gives the same answers and refusals over gRPC as over HTTP.

use std::collections::BTreeSet;

use mesh_tests::{
    Call, Case, MeshClient, Refusals, Rpc, assert_refused, cases, fixture, metric, problem, rpc,
};
use proto_msgs::{
    Contract, Method,
    v2::{
        GetWithdrawalRequest, ListAccountsRequest, ListDelegationsRequest, ListEpochRewardSummariesRequest,
        Pagination, RewardSummaryFilter,
    },
};

/// The call that corresponds to a case, if protobuf can express it and the case is not about HTTP.
fn called(case: &Case) -> Option<Call> {
    let request = &case.request;
    let is_plain = request.method.is_none() && request.headers.is_empty() && !request.path.contains("pretty");
    Call::from_path(&request.path).filter(|_| is_plain)
}

#[tokio::test]
async fn every_case_of_a_read_holds_over_grpc_too() {
    let mesh_client = MeshClient::fixture().await;
    let rpc = Rpc::connect(&fixture::mesh().await.mesh).await;
    let (mut answered, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for (operation, file) in cases::files() {
        for case in &file.cases {
            let Some(called) = called(case) else { continue };
            if called.operation.streaming && case.expect.status == 200 {
                continue;
            }
            let over_http = mesh_client.get(&case.request.path).await;
            let name = format!("{operation}: {}", case.name);
            match rpc.call(&called).await {
                Ok(reply) => {
                    assert_eq!(called.json(reply.get_ref()), over_http.json(), "{name}");
                    for head in ["x-block-height", "x-block-timestamp"] {
                        let metadata_value = reply.metadata().get(head).map(|value| value.to_str().unwrap());
                        assert_eq!(metadata_value, over_http.header(head), "{name}: {head}");
                    }
                    assert!(reply.metadata().contains_key("x-request-id"), "{name}");
                    answered.insert(called.operation.name.as_str());
                }
                Err(status) => {
                    let refusal = rpc::problem(&status).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
                    let expected = problem::read(&over_http);
                    assert_eq!(refusal, expected.unwrap_or_else(|wrong| panic!("{name}: {wrong}")), "{name}");
                    refused.insert(refusal.number);
                }
            }
        }
        // A parameter that is given twice cannot be expressed.
        let expressible =
            file.refusals.iter().filter(|refusals| refusals.names_value || refusals.number != 10_015);
        for path in expressible.flat_map(Refusals::paths) {
            let Some(called) = Call::from_path(&path) else { continue };
            let over_http = mesh_client.get(&path).await;
            let expected = problem::read(&over_http).unwrap_or_else(|wrong| panic!("{path}: {wrong}"));
            let refusal = assert_refused(rpc.call(&called).await, expected.code, expected.number);
            assert_eq!(refusal.inner, expected.inner, "{path}");
            refused.insert(refusal.number);
        }
    }
    let rows = Contract::get().operations();
    let reads: BTreeSet<&str> = rows
        .iter()
        .filter(|row| row.method == Method::Get && !row.streaming && row.workload != "tx-relay")
        .map(|row| row.name.as_str())
        .collect();
    assert!(answered.is_superset(&reads), "not answered: {:?}", reads.difference(&answered));
    // The codes of 2.2 with which a parameter, or the entity that it names, can be refused.
    let numbers = [
        10003, 10011, 10013, 10014, 10015, 10017, 10028, 10029, 10030, 10031, 10034, 10036, 10038, 10041,
        10042, 10043, 80003, 80005, 150_001, 190_001, 240_010, 240_011,
    ];
    let missing: Vec<_> = numbers.iter().filter(|number| !refused.contains(number)).collect();
    assert!(missing.is_empty(), "never refused with {missing:?}");
}

#[tokio::test]
async fn operations_without_a_replica_are_unavailable_under_every_service_name() {
    // A mesh without a node runs no tx-relay.
    let rpc = Rpc::connect(&fixture::mesh().await.mesh).await;
    let rows = Contract::get().operations().iter().filter(|row| row.workload == "tx-relay");
    let mut operations = 0;
    for operation in rows {
        let message = match operation.name.as_str() {
            "GetTransaction" => {
                Call::from_path(&format!("/transaction/{}", fixture::UNKNOWN_ID)).unwrap().message
            }
            _ => Default::default(),
        };
        assert_refused(rpc.call(&Call { operation, message }).await, 14, 10_000);
        operations += 1;
    }
    assert!(operations > 3, "{operations}");
}

#[tokio::test]
async fn protobuf_requests_accept_the_same_forms_as_queries() {
    let rpc = Rpc::connect(&fixture::mesh().await.mesh).await;
    let id = GetWithdrawalRequest { id: fixture::WITHDRAWAL.to_uppercase(), ..Default::default() };
    let withdrawal = rpc.json(&Call::new("GetWithdrawal", &id)).await.unwrap();
    assert_eq!(withdrawal["withdrawal"]["id"], fixture::WITHDRAWAL);
    let request = ListDelegationsRequest {
        party_id: Some(String::new()),
        pagination: Some(Pagination { first: Some(1), after: Some(String::new()), ..Default::default() }),
        ..Default::default()
    };
    let mut called = Call::new("ListDelegations", &request);
    let plain = rpc.json(&Call::from_path("/api/v2/delegations?pagination.first=1").unwrap()).await.unwrap();
    assert_eq!(rpc.json(&called).await.unwrap(), plain, "what is empty counts as absent");
    called.message = [&called.message[..], &[0xf8, 0x01, 5]].concat().into();
    let strict = called.with_metadata(&[("prefer", "handling=strict")]);
    let reply = rpc.call_with(&called, strict).await.unwrap();
    assert_eq!(called.json(reply.get_ref()), plain, "what is unknown is ignored, also by a strict request");
    let asset_ids = [vec![String::new()], vec!["VOTE".to_owned(); 50]].concat();
    let filter = Some(RewardSummaryFilter { asset_ids, ..Default::default() });
    let request = ListEpochRewardSummariesRequest { filter, ..Default::default() };
    let summaries = Call::from_path("/api/v2/rewards/epoch/summaries?filter.assetIds=VOTE").unwrap();
    let called = Call::new("ListEpochRewardSummaries", &request);
    let (found, expected) = (rpc.json(&called).await.unwrap(), rpc.json(&summaries).await.unwrap());
    assert_eq!(found, expected, "an empty element is none");
    let request = ListAccountsRequest { pagination: Some(Pagination::default()), ..Default::default() };
    let accounts = rpc.json(&Call::new("ListAccounts", &request)).await.unwrap();
    let all = rpc.json(&Call::from_path("/accounts").unwrap()).await.unwrap();
    assert_eq!(accounts, all, "a page is not asked for by an empty message");
}

#[tokio::test]
async fn grpc_works_on_both_ports_and_http_still_works() {
    let mesh = &fixture::mesh().await.mesh;
    let called = Call::from_path("/accounts").unwrap();
    let expected = mesh.get("/accounts").await.json();
    for url in [mesh.url(), mesh.grpc_url()] {
        assert_eq!(Rpc::connect_to(&url).await.json(&called).await.unwrap(), expected, "{url}");
    }
    // Other tests call it as well.
    assert!(metric(mesh, "edge", CALLS).await >= 2);
}

/// The metric of answered calls of `ListAccounts` over gRPC.
const CALLS: &str = r#"rpc_server_call_duration_seconds_count{rpc_system_name="grpc",rpc_method="ListAccounts",rpc_response_status_code="OK"} "#;
