//! Requests that the edge refuses before any service receives them: always with a status.

use bytes::Bytes;
use mesh_tests::{Call, Rpc, assert_refused, fixture};
use tonic::{Request, client::GrpcService};

/// A valid call, the basis of the invalid ones.
fn accounts() -> Call {
    Call::from_path("/accounts").unwrap()
}

async fn rpc() -> Rpc {
    Rpc::connect(&fixture::mesh().await.mesh).await
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let rpc = rpc().await;
    // Field 31, which the contract does not have, as bytes of any length.
    let padded = |length: usize| {
        let mut message = vec![0xfa, 0x01];
        let groups = [0, 7, 14, 21].map(|shift| u8::try_from(length >> shift & 0x7f).unwrap());
        message.extend([groups[0] | 0x80, groups[1] | 0x80, groups[2] | 0x80, groups[3]]);
        message.resize(message.len() + length, 0);
        Call { message: message.into(), ..accounts() }
    };
    let (head, at_most) = (6, 2 << 20);
    rpc.call(&padded(at_most - head)).await.expect("it is within the limit");
    for length in [at_most - head + 1, at_most + 100_000] {
        let refusal = assert_refused(rpc.call(&padded(length)).await, 8, 10_000);
        assert_eq!(refusal.inner, "at most 2097152 bytes");
    }
    rpc.call(&accounts()).await.expect("the connection stays open");
}

#[tokio::test]
async fn metadata_over_the_limit_are_refused() {
    let rpc = rpc().await;
    let with = |bytes: usize| accounts().with_metadata(&[("x-much", "m".repeat(bytes).as_str())]);
    rpc.call_with(&accounts(), with(15 << 10)).await.expect("it is within the limit");
    assert_refused(rpc.call_with(&accounts(), with(17 << 10)).await, 8, 10_000);
    rpc.call(&accounts()).await.expect("the connection stays open");
}

#[tokio::test]
async fn an_unknown_method_is_unimplemented() {
    let rpc = rpc().await;
    for path in
        ["/api.v2.Query/Nothing", "/api.v2.Unknown/ListAccounts", "/api.v3.Query/ListAccounts", "/", "/x"]
    {
        let answered = rpc.call_at(path.parse().unwrap(), Request::new(Bytes::new())).await;
        assert_refused(answered, 12, 10_000);
    }
}

#[tokio::test]
async fn a_message_that_does_not_decode_is_invalid_argument() {
    let rpc = rpc().await;
    for message in [&[0x0a, 1, 0xff][..], &[0x0a, 9, b'x'], &[0x07], &[0xff; 20]] {
        let called = Call { message: Bytes::copy_from_slice(message), ..accounts() };
        assert_refused(rpc.call(&called).await, 3, 10_015);
    }
}

#[tokio::test]
async fn a_message_may_be_plain_in_a_call_with_a_compression() {
    let rpc = rpc().await;
    let request = accounts().with_metadata(&[("grpc-encoding", "gzip")]);
    let reply = rpc.call_with(&accounts(), request).await.expect("it is not compressed");
    assert_eq!(reply.metadata().get("grpc-accept-encoding").unwrap(), "identity");
}

#[tokio::test]
async fn an_invalid_timeout_is_refused_and_a_zero_timeout_has_expired() {
    let rpc = rpc().await;
    let with = |timeout: &str| accounts().with_metadata(&[("grpc-timeout", timeout)]);
    for wrong in ["5", "5s", "-1S", "123456789S"] {
        assert_refused(rpc.call_with(&accounts(), with(wrong)).await, 3, 10_015);
    }
    assert_refused(rpc.call_with(&accounts(), with("0n")).await, 4, 10_000);
    rpc.call_with(&accounts(), with("99999999H")).await.expect("there is time enough");
}

/// Over HTTP/1 they are refused in `errors/head.rs`.
#[tokio::test]
async fn grpc_web_and_other_codecs_are_refused_as_media_types_over_http_2() {
    let (mut connection, origin) = rpc().await.connection();
    for kind in ["application/grpc-web+proto", "application/grpc+json"] {
        let request = http::Request::post(format!("{origin}api.v2.Query/ListAccounts"));
        let request = request.header("content-type", kind).body(tonic::body::Body::empty()).unwrap();
        let answer = GrpcService::call(&mut connection, request).await.expect("an answer");
        assert_eq!(answer.status(), 415, "{kind}");
        for (name, value) in [("access-control-allow-origin", "*"), ("cache-control", "no-store")] {
            assert_eq!(answer.headers().get(name).unwrap(), value, "{kind}");
        }
    }
}
