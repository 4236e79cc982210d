//! The standard gRPC services: health and reflection.

use std::{collections::BTreeSet, time::Duration};

use futures_util::{StreamExt, stream};
use mesh_tests::{Rpc, fixture, rpc::Connection};
use prost_reflect::{
    DescriptorPool,
    prost::Message,
    prost_types::{FileDescriptorProto, FileDescriptorSet},
};
use proto_msgs::Contract;
use tokio::time::timeout;
use tonic::{Code, Streaming};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_client::HealthClient,
};
use tonic_reflection::pb::{
    v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    },
    v1alpha::{self, server_reflection_client::ServerReflectionClient as OldClient},
};

use crate::grpc::TIME_LIMIT;

/// Longer than the interval of the edge's own checks.
const QUIET: Duration = Duration::from_millis(1200);

async fn check(client: &mut HealthClient<Connection>, service: &str) -> Result<ServingStatus, Code> {
    let request = HealthCheckRequest { service: service.to_owned() };
    let answered = client.check(request).await.map_err(|status| status.code())?;
    Ok(answered.get_ref().status())
}

/// Waits for a status other than this one.
async fn await_other_status(
    watched: &mut Streaming<HealthCheckResponse>,
    status: ServingStatus,
) -> ServingStatus {
    let changed = async {
        loop {
            let told = watched.message().await.expect("it goes on").expect("it goes on").status();
            if told != status {
                return told;
            }
        }
    };
    timeout(TIME_LIMIT, changed).await.expect("it changes")
}

#[test]
fn health_is_serving_while_a_workload_has_a_replica() {
    fixture::exclusively(async |_, mesh| {
        let (connection, origin) = Rpc::connect(mesh).await.connection();
        let mut client = HealthClient::with_origin(connection, origin);
        let request = HealthCheckRequest { service: "api.v2.Query".to_owned() };
        let mut query = client.watch(request).await.unwrap().into_inner();
        let first = query.message().await.unwrap().unwrap().status();
        if first != ServingStatus::Serving {
            assert_eq!(await_other_status(&mut query, first).await, ServingStatus::Serving);
        }
        for service in ["", "api.v2.Query"] {
            assert_eq!(check(&mut client, service).await, Ok(ServingStatus::Serving), "{service}");
        }
        assert_eq!(check(&mut client, "api.v2.TxRelay").await, Ok(ServingStatus::NotServing));
        assert_eq!(check(&mut client, "api.v2.Unknown").await, Err(Code::NotFound));

        mesh.service("query").kill().await;
        assert_eq!(await_other_status(&mut query, ServingStatus::Serving).await, ServingStatus::NotServing);
        assert_eq!(check(&mut client, "api.v2.Query").await, Ok(ServingStatus::NotServing));
        assert_eq!(check(&mut client, "").await, Ok(ServingStatus::Serving), "the edge itself is there");
        mesh.service_mut("query").restart().await;
        assert_eq!(await_other_status(&mut query, ServingStatus::NotServing).await, ServingStatus::Serving);

        let request = HealthCheckRequest { service: "api.v2.Unknown".to_owned() };
        let mut nobody = client.watch(request).await.unwrap().into_inner();
        assert_eq!(nobody.message().await.unwrap().unwrap().status(), ServingStatus::ServiceUnknown);
        let silence = timeout(QUIET, nobody.message()).await;
        assert!(silence.is_err(), "the stream stays open: {silence:?}");

        let request = HealthCheckRequest { service: String::new() };
        let mut mesh_health = client.watch(request).await.unwrap().into_inner();
        assert_eq!(mesh_health.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
        let began = std::time::Instant::now();
        let (status, ()) = tokio::join!(mesh.service("edge").stop(), async {
            let status = await_other_status(&mut mesh_health, ServingStatus::Serving).await;
            assert_eq!(status, ServingStatus::NotServing);
            for stream in [&mut mesh_health, &mut nobody] {
                let ended = timeout(TIME_LIMIT, stream.message()).await.expect("it ends");
                assert_eq!(ended.expect_err("with a status").code(), Code::Unavailable);
            }
        });
        // Open streams do not delay a stop: the testbed kills after 5 s.
        assert!(status.success() && began.elapsed().as_secs() < 5, "{status} after {:?}", began.elapsed());
    });
}

#[tokio::test]
async fn reflection_describes_the_whole_contract() {
    let (connection, origin) = Rpc::connect(&fixture::mesh().await.mesh).await.connection();
    let mut client = ServerReflectionClient::with_origin(connection.clone(), origin.clone());
    let ask = |request| ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let files = ["api/v2/query.proto", "google/rpc/status.proto"];
    let mut requests = vec![ask(MessageRequest::ListServices(String::new()))];
    requests.extend(
        Contract::get()
            .operations()
            .iter()
            .map(|row| ask(MessageRequest::FileContainingSymbol(format!("{}.{}", row.service, row.name)))),
    );
    let expected = ["common", "document", "rules"].map(|name| format!("api/v2/{name}.proto"));
    let imported = ["google/api/annotations.proto", "google/api/http.proto", "google/api/httpbody.proto"];
    let imported =
        imported.into_iter().chain(["google/protobuf/any.proto", "google/protobuf/descriptor.proto"]);
    let names = expected.into_iter().chain(imported.chain(files).map(str::to_owned));
    requests.extend(names.map(|name| ask(MessageRequest::FileByFilename(name))));
    // A value of an enum is a sibling of its type.
    requests.push(ask(MessageRequest::FileContainingSymbol("api.v2.TABLE_TRADES".to_owned())));
    // What finds nothing does not end the stream.
    let nothing = [
        ask(MessageRequest::FileContainingSymbol("api.v2.Query.Unknown".to_owned())),
        ask(MessageRequest::FileByFilename("unknown.proto".to_owned())),
        ask(MessageRequest::AllExtensionNumbersOfType("api.v2.Unknown".to_owned())),
        ServerReflectionRequest::default(),
    ];
    requests.splice(..0, nothing);
    let count = requests.len();
    let mut told = client.server_reflection_info(stream::iter(requests)).await.unwrap().into_inner();
    let (mut services, mut described) = (BTreeSet::new(), FileDescriptorSet::default());
    let (mut found, mut refused) = (BTreeSet::new(), Vec::new());
    for _ in 0..count {
        match told.message().await.unwrap().unwrap().message_response.unwrap() {
            MessageResponse::ListServicesResponse(list) => {
                services.extend(list.service.into_iter().map(|service| service.name));
            }
            MessageResponse::FileDescriptorResponse(files) => {
                for file in files.file_descriptor_proto {
                    let file = FileDescriptorProto::decode(file.as_slice()).unwrap();
                    if found.insert(file.name().to_owned()) {
                        described.file.push(file);
                    }
                }
            }
            MessageResponse::ErrorResponse(error) => refused.push(Code::from(error.error_code)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(refused, [Code::NotFound, Code::NotFound, Code::NotFound, Code::InvalidArgument]);
    let operations: BTreeSet<&str> =
        Contract::get().operations().iter().map(|row| row.service.as_str()).collect();
    let standard = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"];
    for service in operations.into_iter().chain(standard) {
        assert!(services.contains(service), "{service} is not among {services:?}");
    }
    let pool = DescriptorPool::from_file_descriptor_set(described).expect("the descriptors are complete");
    for row in Contract::get().operations() {
        let service = pool.get_service_by_name(&row.service).unwrap();
        assert!(service.methods().any(|method| method.name() == row.name), "{}", row.name);
    }

    let many = vec![ask(MessageRequest::ListServices(String::new())); 101];
    let told = client.server_reflection_info(stream::iter(many)).await.unwrap().into_inner();
    let told: Vec<_> = told.collect().await;
    assert_eq!(told.iter().filter(|answer| answer.is_ok()).count(), 100);
    assert_eq!(told[100].as_ref().unwrap_err().code(), Code::ResourceExhausted);

    let mut old = OldClient::with_origin(connection, origin);
    let request = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(
            v1alpha::server_reflection_request::MessageRequest::ListServices(String::new()),
        ),
    };
    let mut told = old.server_reflection_info(stream::iter([request])).await.unwrap().into_inner();
    assert!(told.message().await.unwrap().is_some());
}
