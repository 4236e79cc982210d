//! Requests whose end or host two servers may understand differently: refused with 400 and closed, alone and
//! after a valid request.

use mesh_tests::{MeshClient, Traffic};

use crate::http_hardening::{VALID_REQUEST, answer, begin, connect, rest};

/// The smuggled request, which must never be answered.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

/// Heads that are ambiguous: by some of the rules, which are all in the tests of `mesh-framing`, and by hosts
/// of absolute targets.
const HEADS: [&str; 8] = [
    "POST /transaction HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET /health HTTP/1.1\nHost: x\r\n\r\n",
    "GET /health HTTP/1.1\r\n\r\n",
    "GET http://u@x/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET http://x:99999/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET http://x:80x/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET http://:80/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /health#x HTTP/1.1\r\nHost: x\r\n\r\n",
];

/// Chunked bodies that are ambiguous, likewise: in the first chunk, and behind the last one.
const BODIES: [&str; 2] = ["2\n{}\r\n0\r\n\r\n", "2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n"];

/// Heads for chunked bodies: of an operation that reads a body, of one that does not, of an unknown path.
const CARRIERS: [&str; 3] = ["POST /transaction", "GET /accounts", "POST /nowhere"];

/// Sends a request that must be refused after `behind` valid ones, at once or in two pieces.
async fn assert_refused_after_valid(url: &str, refused: &str, behind: usize, cut: Option<usize>) {
    let stream = format!("{}{refused}{SMUGGLED}", VALID_REQUEST.repeat(behind));
    let shown = stream.escape_default();
    let mut connection = connect(url).await;
    let (first, second) = stream.as_bytes().split_at(cut.unwrap_or(stream.len()));
    connection.send(first).await.expect("the edge reads");
    if cut.is_some() {
        tokio::task::yield_now().await;
        // The edge may have closed the connection already.
        let _ = connection.send(second).await;
    }
    for _ in 0..behind {
        assert_eq!(answer(&mut connection).await.status, 200, "before {shown}");
    }
    let refusal = answer(&mut connection).await;
    assert_eq!(refusal.status, 400, "{shown}: {refusal:?}");
    assert!(refusal.body.is_empty(), "{shown}: {refusal:?}");
    assert!(refusal.closes(), "{shown}: {refusal:?}");
    assert_eq!(rest(&mut connection).await, b"", "{shown}");
}

async fn assert_refused_alone_and_after_others(url: &str, refused: &str) {
    for behind in [0, 1, 3] {
        assert_refused_after_valid(url, refused, behind, None).await;
    }
    let length = VALID_REQUEST.len() + refused.len();
    for cut in [VALID_REQUEST.len() + 1, length - refused.len() / 2, length - 1] {
        assert_refused_after_valid(url, refused, 1, Some(cut)).await;
    }
}

#[tokio::test]
async fn ambiguous_heads_are_refused_and_closed_and_valid_requests_before_them_answered() {
    let mesh = MeshClient::fixture().await;
    let traffic = Traffic::start(&mesh);
    for head in HEADS {
        assert_refused_alone_and_after_others(mesh.url(), head).await;
    }
    traffic.end().await;
}

#[tokio::test]
async fn ambiguous_bodies_are_refused_and_closed_even_when_no_body_is_expected() {
    let mesh = MeshClient::fixture().await;
    let traffic = Traffic::start(&mesh);
    for carrier in CARRIERS {
        for body in BODIES {
            let refused =
                format!("{carrier} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
            assert_refused_alone_and_after_others(mesh.url(), &refused).await;
        }
    }
    traffic.end().await;
}

#[tokio::test]
async fn a_client_that_goes_on_sending_still_reads_why_it_is_refused() {
    let mesh = MeshClient::fixture().await;
    for _ in 0..20 {
        let mut connection = begin(mesh.url(), "GET /health HTTP/1.1\n").await;
        for _ in 0..8 {
            connection.send(&[b'x'; 64 << 10]).await.expect("the edge reads on for a while");
        }
        let refusal = answer(&mut connection).await;
        assert_eq!((refusal.status, refusal.closes()), (400, true), "{refusal:?}");
        assert_eq!(rest(&mut connection).await, b"", "a reset could have cost the answer");
    }
}

#[tokio::test]
async fn valid_pipelined_requests_are_answered_in_order() {
    let mesh = MeshClient::fixture().await;
    let traffic = Traffic::start(&mesh);
    let chunked = "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let requests = [
        (200, VALID_REQUEST.to_owned()),
        (404, format!("POST /nowhere HTTP/1.1\r\n{chunked}2\r\n\r\n\r\n0\r\n\r\n")),
        (
            200,
            format!("GET /accounts HTTP/1.1\r\n{chunked}1;a=\"b\"\r\n\n\r\n0A ;x\r\n0123456789\r\n0\r\n\r\n"),
        ),
        (400, format!("POST /transaction HTTP/1.1\r\n{chunked}3\r\n{{}}x\r\n000\r\nX-Sum: 1\r\n\r\n")),
        (503, "POST /transaction HTTP/1.1\r\nhost:x\r\ncontent-length: 2 \r\n\r\n{}".to_owned()),
        (405, "\r\n\r\nDELETE /accounts HTTP/1.1\r\nHost:\r\nContent-Length: 0\r\n\r\n".to_owned()),
        (200, "GET http://[::1]:8080/health HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n".to_owned()),
        (200, "GET /health HTTP/1.1\r\nHost:\t127.0.0.1:80 \r\n\r\n".to_owned()),
        (
            204,
            "OPTIONS /accounts HTTP/1.1\r\nHost: my_service.a%20b:\r\nX-Odd: a:b;c, d\te\r\n\r\n".to_owned(),
        ),
        (200, VALID_REQUEST.to_owned()),
    ];
    let stream: String = requests.iter().map(|(_, request)| request.as_str()).collect();
    for piece in [1, 7, stream.len()] {
        let mut connection = connect(mesh.url()).await;
        for piece in stream.as_bytes().chunks(piece) {
            connection.send(piece).await.expect("the edge reads");
        }
        for (status, request) in &requests {
            let answer = answer(&mut connection).await;
            assert_eq!((answer.status, answer.closes()), (*status, false), "{request:?}: {answer:?}");
        }
    }
    let received = rest(&mut begin(mesh.url(), "GET /health HTTP/1.0\r\n\r\n").await).await;
    assert!(received.starts_with(b"HTTP/1.0 200 "), "HTTP/1.0 needs no host: {}", received.escape_ascii());
    traffic.end().await;
}
