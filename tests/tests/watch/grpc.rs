//! Watching over gRPC (W9).

use bytes::Bytes;
use http::uri::PathAndQuery;
use mesh_tests::{Call, Rpc, assert_refused, fixture};
use prost_reflect::{prost::Message as _, prost_types::Any};
use proto_msgs::v2::{GetWithdrawalReply, GetWithdrawalRequest, WatchReply, WatchRequest};
use tonic::{Code, Request, Status, Streaming};

use super::{start, write_block};

async fn watch(rpc: &Rpc, request: &WatchRequest) -> Result<Streaming<Bytes>, Status> {
    watch_with(rpc, Request::new(request.encode_to_vec().into())).await
}

async fn watch_after(rpc: &Rpc, last_event_id: &str) -> Streaming<Bytes> {
    let mut request = Request::new(Bytes::from(of_withdrawal().encode_to_vec()));
    request.metadata_mut().insert("last-event-id", last_event_id.parse().unwrap());
    watch_with(rpc, request).await.unwrap()
}

async fn watch_with(rpc: &Rpc, request: Request<Bytes>) -> Result<Streaming<Bytes>, Status> {
    rpc.stream_at(PathAndQuery::from_static("/api.v2.Watch/Watch"), request).await
}

fn read(id: &str) -> GetWithdrawalRequest {
    GetWithdrawalRequest { id: id.to_owned(), ..Default::default() }
}

fn of_withdrawal() -> WatchRequest {
    let value = read(fixture::WITHDRAWAL).encode_to_vec();
    let type_url = "type.googleapis.com/api.v2.GetWithdrawalRequest".to_owned();
    WatchRequest { method: "api.v2.Query/GetWithdrawal".to_owned(), request: Some(Any { type_url, value }) }
}

async fn next(stream: &mut Streaming<Bytes>) -> (WatchReply, GetWithdrawalReply) {
    let message = stream.message().await.expect("it goes on").expect("it has not ended");
    let reply = WatchReply::decode(message).unwrap();
    let answer = reply.answer.clone().unwrap();
    assert_eq!(answer.type_url, "type.googleapis.com/api.v2.GetWithdrawalReply");
    let answer = GetWithdrawalReply::decode(answer.value.as_slice()).unwrap();
    (reply, answer)
}

#[tokio::test]
async fn the_states_of_a_read_come_as_messages_with_height_and_time() {
    let (database, mesh, _client) = start(&[]).await;
    let writer = database.connect().await;
    let rpc = Rpc::connect(&mesh).await;
    let mut stream = watch(&rpc, &of_withdrawal()).await.unwrap();
    let (first, answer) = next(&mut stream).await;
    assert_eq!((first.height, first.timestamp.to_string().as_str()), (3, fixture::BLOCK_TIME));
    let plain = rpc.call(&Call::new("GetWithdrawal", &read(fixture::WITHDRAWAL))).await.unwrap();
    let plain = GetWithdrawalReply::decode(plain.into_inner()).unwrap();
    assert_eq!(answer, plain);
    let mut last = first;
    for height in [4, 5] {
        write_block(&writer, height, Some(&height.to_string())).await;
        let (reply, answer) = next(&mut stream).await;
        assert_eq!((reply.height, answer.withdrawal.unwrap().r#ref), (height, height.to_string()));
        last = reply;
    }
    let mut back = watch_after(&rpc, "5").await;
    write_block(&writer, 6, None).await;
    let (reply, _) = next(&mut back).await;
    assert_eq!(reply.height, 6, "nothing before a block that it has not seen");
    for last in ["7", "18446744073709551615", "-6", "x"] {
        let mut ahead = watch_after(&rpc, last).await;
        assert_eq!(next(&mut ahead).await.0, reply, "{last} counts as none");
    }
    let mut another = watch(&rpc, &of_withdrawal()).await.unwrap();
    assert_eq!(next(&mut another).await.0, reply, "the time is that of the height, not of the change");
    assert_ne!(reply.timestamp, last.timestamp);
    assert!(mesh.service("edge").stop().await.success());
    let ended = stream.message().await.unwrap_err();
    assert_eq!((ended.code(), ended.message()), (Code::Unavailable, "the edge is stopping"));
}

#[tokio::test]
async fn a_watch_is_refused_as_the_read_is_and_for_what_is_no_read() {
    let rpc = Rpc::connect(&fixture::mesh().await.mesh).await;
    let refused = async |change: &dyn Fn(&mut WatchRequest), code, number| {
        let mut request = of_withdrawal();
        change(&mut request);
        let mut stream = match watch(&rpc, &request).await {
            Ok(stream) => stream,
            Err(status) => return assert_refused::<()>(Err(status), code, number),
        };
        assert_refused(stream.message().await, code, number)
    };
    let any = |request: &mut WatchRequest, value: Vec<u8>| request.request.as_mut().unwrap().value = value;
    refused(&|request| any(request, read("xy").encode_to_vec()), 3, 80_005).await;
    refused(&|request| any(request, read(fixture::UNKNOWN_ID).encode_to_vec()), 5, 150_001).await;
    refused(&|request| any(request, vec![0xff]), 3, 10_015).await;
    refused(&|request| request.request = None, 3, 80_003).await;
    let past = GetWithdrawalRequest { at_block: Some(1), ..read(fixture::WITHDRAWAL) };
    let past = refused(&|request| any(request, past.encode_to_vec()), 3, 10_015).await;
    assert_eq!(past.inner, "atBlock", "a watch has no past");
    for method in [
        "", "api.v2.Query/Nothing", "/api.v2.Query/ListMarkets", "api.v2.TxRelay/SubmitTransaction",
        "api.v2.Export/ExportLedgerEntries",
    ] {
        refused(&|request| request.method = method.to_owned(), 3, 10_015).await;
    }
    let long = refused(&|request| request.method = "x".repeat(100_000), 3, 10_015).await;
    assert!(long.inner.len() < 1000, "a refusal is in headers");
    let mut timed = Request::new(Bytes::from(of_withdrawal().encode_to_vec()));
    timed.set_timeout(std::time::Duration::from_millis(1500));
    let mut stream = watch_with(&rpc, timed).await.unwrap();
    next(&mut stream).await;
    assert_eq!(stream.message().await.unwrap_err().code(), Code::DeadlineExceeded, "the client's own");
}
