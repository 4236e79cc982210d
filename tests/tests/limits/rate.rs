//! The limit of requests per second of one address.

use std::time::Duration;

use mesh_testbed::{Answer, Mesh, MeshSetup, eventually};
use mesh_tests::{Call, MeshClient, Rpc, assert_problem, assert_refused, fixture, metric};
use tonic::{Code, Request};

use crate::limits::{HOT, get_for};

/// The burst; and a number of requests that exceeds what is refilled while a test runs.
const BURST: u64 = 8;
const MANY: u64 = 200;

const TIME_LIMIT: Duration = Duration::from_secs(20);

fn limited(setup: MeshSetup<'_>) -> MeshSetup<'_> {
    setup.env("MESH_EDGE_RATE_PER_S", "1").env("MESH_EDGE_RATE_BURST", BURST.to_string())
}

/// The rate limit headers of an answer: limit, remaining, reset.
fn rate_headers(answer: &Answer) -> [u64; 3] {
    ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"].map(|name| {
        let value = answer.header(name).and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("there is no {name}: {answer:?}"))
    })
}

/// Sends requests until one is refused.
async fn use_up_burst(mesh_client: &MeshClient, client: &str, path: &str) -> Answer {
    for _ in 0..MANY {
        let answer = get_for(mesh_client, client, path).await;
        if answer.status == 429 {
            return answer;
        }
    }
    panic!("{client} is never refused");
}

#[tokio::test]
async fn a_client_above_the_rate_limit_gets_429_with_retry_after_and_is_not_banned() {
    let (_database, mesh, mesh_client) = fixture::start(limited).await;
    let limits = mesh_client.get("/limits").await;
    assert_eq!(limits.json()["rate"]["requestsPerS"], 1);
    assert_eq!(rate_headers(&limits)[..2], [BURST, BURST - 1]);
    // A cached answer, a client error and an unknown path all count.
    for (path, status) in
        [(HOT, 200), (HOT, 200), ("/api/v2/delegations?pagination.first=x", 400), ("/no", 404)]
    {
        let answer = mesh_client.get(path).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(rate_headers(&answer)[1] < BURST - 1, "{answer:?}");
    }
    let refused = use_up_burst(&mesh_client, "", HOT).await;
    assert_problem(&refused, 429, 8, 400_001);
    let [limit, remaining, reset] = rate_headers(&refused);
    assert_eq!((limit, remaining, refused.header("retry-after")), (BURST, 0, Some("1")));
    assert!((1..=BURST).contains(&reset), "{refused:?}");
    assert!(metric(&mesh, "edge", "mesh_edge_requests_limited_total{limit=\"rate\"}").await >= 1);

    // The order of contract 2.3: errors of path, method and size come before the rate limit.
    assert_eq!(mesh_client.get("/no").await.status, 404);
    let wrong = mesh_client.send("DELETE", HOT).await;
    assert_eq!((wrong.status, wrong.header("retry-after")), (405, None));
    let post = |length: usize| mesh_client.post_with("/transaction", &[], " ".repeat(length));
    assert_eq!((post((2 << 20) + 1).await.status, post(2).await.status), (413, 429));
    // CORS preflight requests are not limited, since browsers do not show their refusal, and use up nothing.
    let preflight = [("origin", "https://a.example"), ("access-control-request-method", "GET")];
    let preflight = mesh_client.send_with("OPTIONS", HOT, &preflight).await;
    assert_eq!((preflight.status, preflight.header("ratelimit-limit")), (204, None));
    for _ in 0..2 * BURST {
        assert_eq!(mesh_client.get("/health").await.status, 200, "health checks are exempt");
    }

    // No proxy is trusted, so the client is the same for any `X-Forwarded-For`.
    let mut refused = false;
    for lie in 0..MANY {
        refused |= get_for(&mesh_client, &format!("198.51.100.{}", lie % 250), HOT).await.status == 429;
    }
    assert!(refused, "a client is believed although no proxy is trusted");
    assert_refused_over_grpc(&mesh).await;

    // A second later one request is allowed again, however many were refused.
    let is_served = async || mesh_client.get(HOT).await.status != 429;
    eventually(TIME_LIMIT, "a client that was refused is banned", is_served).await;
}

/// The limit is the same one, and health is answered.
async fn assert_refused_over_grpc(mesh: &Mesh) {
    let rpc = Rpc::connect(mesh).await;
    let called = Call::from_path(HOT).unwrap();
    let mut refused = rpc.call(&called).await;
    // Perhaps one request was refilled meanwhile.
    for _ in 0..MANY {
        if refused.is_err() {
            break;
        }
        refused = rpc.call(&called).await;
    }
    let status = refused.as_ref().expect_err("it is refused");
    let of =
        |name: &str| status.metadata().get(name).and_then(|value| value.to_str().ok().map(str::to_owned));
    assert_eq!(of("ratelimit-limit"), Some(BURST.to_string()), "{status:?}");
    assert_eq!((of("ratelimit-remaining").as_deref(), of("retry-after").as_deref()), (Some("0"), Some("1")));
    assert!(of("ratelimit-reset").is_some());
    assert_refused(refused, 8, 400_001);
    let health = "/grpc.health.v1.Health/Check".parse::<http::uri::PathAndQuery>().unwrap();
    for _ in 0..BURST {
        let answered = rpc.call_at(health.clone(), Request::new(bytes::Bytes::new())).await;
        answered.expect("health is answered");
    }
    let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo".parse().unwrap();
    let refused = rpc.call_at(reflection, Request::new(bytes::Bytes::new())).await;
    assert_eq!(refused.expect_err("it is refused").code(), Code::ResourceExhausted);
}

/// That they cannot forge their address, and that a /64 is one client, is in the unit tests of the edge.
#[tokio::test]
async fn clients_behind_a_trusted_proxy_are_distinguished() {
    let (_database, _mesh, mesh_client) =
        fixture::start(|setup| limited(setup).env("MESH_EDGE_TRUSTED_PROXIES", "127.0.0.0/8,10.0.0.0/8"))
            .await;
    use_up_burst(&mesh_client, "203.0.113.9, 10.0.0.1", HOT).await;
    assert_eq!(get_for(&mesh_client, "203.0.113.10, 10.0.0.1", HOT).await.status, 200, "another client");
    let remaining = rate_headers(&get_for(&mesh_client, "203.0.113.9", HOT).await)[1];
    assert_eq!(remaining, 0, "over another proxy it is the same client");
}

#[tokio::test]
async fn without_a_rate_limit_no_request_is_refused_and_no_header_sent() {
    let mesh_client = MeshClient::fixture().await;
    for _ in 0..2 * BURST {
        let answer = mesh_client.get(HOT).await;
        assert_eq!((answer.status, answer.header("ratelimit-limit")), (200, None));
    }
}
