//! Every operation answers over gRPC what it answers over HTTP.

use mesh_tests::{
    cases, fixture,
    outside::Outside,
    rpc::{Called, Rpc},
};

#[tokio::test]
async fn every_operation_answers_as_it_does_over_http() {
    let outside = Outside::fixture().await;
    let rpc = Rpc::at(fixture::mesh_url().await).await;
    let mut operations = 0;
    for (name, path) in cases::answered() {
        let called = Called::by_path(&path).unwrap_or_else(|| panic!("{path} can be said in protobuf"));
        if called.operation.streaming {
            continue;
        }
        assert_eq!(called.operation.name, name);
        let reply = rpc.json(&called).await.unwrap_or_else(|status| panic!("{name}: {status:?}"));
        assert_eq!(reply, outside.get(&path).await.json(), "{name}");
        operations += 1;
    }
    assert!(operations > 10, "{operations}");
}
