//! `HEAD`, `OPTIONS` and pages of other origins: J14.

use std::collections::BTreeMap;

use mesh_testbed::{Answer, Mesh};
use mesh_tests::{MeshClient, cases, fixture};
use proto_msgs::{Contract, Method as Kind};

use super::varies_by;

const ALLOWED_HEADERS: &str = "Accept, Authorization, Cache-Control, Content-Type, If-Match, If-None-Match, If-Range, \
    Last-Event-ID, Pragma, Prefer, Range, X-Api-Key, X-Request-Id, X-Requested-With, traceparent, tracestate";
const EXPOSED_HEADERS: &str = "ETag, Content-Length, Content-Range, Content-Disposition, Accept-Ranges, Repr-Digest, \
    RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Block-Height, X-Block-Timestamp, \
    X-Request-Id, X-Total-Rows, X-Ignored, Preference-Applied";

/// The headers without those that differ from one answer to the next.
fn stable_headers(answer: &Answer) -> BTreeMap<String, String> {
    let headers = answer.headers.iter().filter(|(name, _)| !matches!(name.as_str(), "date" | "x-request-id"));
    headers
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}

#[tokio::test]
async fn j14_head_is_answered_as_get_without_the_body() {
    let mesh = MeshClient::fixture().await;
    let mut paths: Vec<String> = cases::answered().into_iter().map(|(_, path)| path).collect();
    paths.extend(
        ["/nowhere", "/accounts?party=x", "/api/v2/candle", "/api/v2/networkhistory/segments"]
            .map(str::to_owned),
    );
    for path in paths {
        for encoding in ["identity", "gzip"] {
            let get = mesh.get_with(&path, "accept-encoding", encoding).await;
            let head = mesh.send_with("HEAD", &path, &[("accept-encoding", encoding)]).await;
            assert_eq!(head.status, get.status, "{path}");
            assert_eq!(head.body.len(), 0, "{path}");
            assert_eq!(stable_headers(&head), stable_headers(&get), "{path}, {encoding}");
            assert_eq!(get.header("content-length"), Some(get.body.len().to_string().as_str()), "{path}");
        }
    }
}

#[tokio::test]
async fn j14_options_is_answered_with_204_and_what_is_allowed() {
    let mesh = MeshClient::fixture().await;
    for operation in Contract::get().operations() {
        let path = operation.template();
        let methods = if operation.method == Kind::Get { "GET, HEAD, OPTIONS" } else { "POST, OPTIONS" };
        let preflight = [
            ("origin", "https://somewhere.example"),
            ("access-control-request-method", "GET"),
            ("access-control-request-headers", "x-request-id"),
        ];
        for answer in [mesh.send_with("OPTIONS", &path, &preflight).await, mesh.send("OPTIONS", &path).await]
        {
            assert_eq!((answer.status, answer.body.len()), (204, 0), "{path}");
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{path}");
            assert_eq!(answer.header("access-control-allow-methods"), Some(methods), "{path}");
            assert_eq!(answer.header("access-control-allow-headers"), Some(ALLOWED_HEADERS), "{path}");
            assert_eq!(answer.header("access-control-expose-headers"), Some(EXPOSED_HEADERS), "{path}");
            assert_eq!(answer.header("access-control-max-age"), Some("7200"), "{path}");
        }
    }
    // The 404 of an unknown path is readable only after a successful preflight.
    let preflight = [("origin", "https://somewhere.example"), ("access-control-request-method", "POST")];
    let answer = mesh.send_with("OPTIONS", "/nowhere", &preflight).await;
    let methods = answer.header("access-control-allow-methods");
    assert_eq!((answer.status, methods), (204, Some("GET, HEAD, POST, OPTIONS")));
    assert_eq!(mesh.send("OPTIONS", "/nowhere").await.status, 404);
}

#[tokio::test]
async fn j14_answers_and_errors_may_be_read_by_pages_of_any_origin() {
    let mesh = MeshClient::fixture().await;
    for path in
        ["/accounts", "/accounts?party=x", "/nowhere", "/transaction", "/api/v2/networkhistory/segments"]
    {
        let answer = mesh.get_with(path, "origin", "https://somewhere.example").await;
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{path}");
        assert_eq!(answer.header("access-control-expose-headers"), Some(EXPOSED_HEADERS), "{path}");
    }
}

/// 304 has the length of the answer that the client has, or none.
#[tokio::test]
async fn j14_head_of_what_is_unchanged_has_no_length() {
    let mesh = MeshClient::fixture().await;
    for path in ["/accounts", "/limits", "/api/v2/markets"] {
        let head = mesh.send_with("HEAD", path, &[("if-none-match", "*")]).await;
        assert_eq!((head.status, head.header("content-length")), (304, None), "{path}");
    }
}

#[tokio::test]
async fn j14_origins_and_private_networks_can_be_chosen() {
    let database = fixture::database().await;
    let origins = "https://one.example, https://two.example:8443";
    let mesh = Mesh::configure(&database).env("MESH_EDGE_CORS_ORIGINS", origins).start().await;
    let mesh = MeshClient::new(&mesh);
    for method in ["GET", "OPTIONS"] {
        let from = async |origin: &str| mesh.send_with(method, "/accounts", &[("origin", origin)]).await;
        for origin in ["https://one.example", "https://two.example:8443"] {
            let answer = from(origin).await;
            assert_eq!(answer.header("access-control-allow-origin"), Some(origin), "{method}");
            assert!(varies_by(&answer, "Origin"), "{method}: a cache must tell origins apart: {answer:?}");
        }
        for origin in ["https://three.example", "https://two.example", "http://one.example", "null"] {
            let allowed = from(origin).await.header("access-control-allow-origin").map(str::to_owned);
            assert_eq!(allowed, None, "{method} from {origin}");
        }
    }
    // A page of a public site requests a gateway in its visitor's own network.
    let open = MeshClient::fixture().await;
    for (mesh, origin, requested, allowed) in [
        (&open, "https://one.example", "true", Some("true")),
        (&open, "https://one.example", "false", None),
        (&mesh, "https://one.example", "true", Some("true")),
        (&mesh, "https://two.example", "true", None),
    ] {
        let headers = [("origin", origin), ("access-control-request-private-network", requested)];
        let answer = mesh.send_with("OPTIONS", "/accounts", &headers).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        assert_eq!(answer.header("access-control-allow-private-network"), allowed, "{origin}, {requested}");
    }
}
