//! Each rule, in the first and in the second request of a connection, and streams that are accepted.

use mesh_framing::Ambiguity;

use crate::record::{Record, Request, read};

const SOUND: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// What is wrong unless the byte after the `^` in a stream is refused, also when the stream follows a valid request.
fn failures_of(reason: Ambiguity, marked: &str) -> Vec<String> {
    let (before, rest) = cut(marked);
    let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    let mut failures = Vec::new();
    for first in ["", SOUND, chunked] {
        let stream = format!("{first}{before}{rest}");
        let refused = read([stream.as_bytes()]).0.refused;
        let expected = Some((first.len() + before.len(), reason));
        if refused != expected {
            failures.push(format!("{stream:?}: {refused:?}, not {expected:?}"));
        }
    }
    failures
}

/// The parts of a stream before and after its `^`.
fn cut(marked: &str) -> (&str, &str) {
    marked.split_once('^').unwrap_or_else(|| panic!("no byte is marked in {marked:?}"))
}

/// The bodies of a stream; asserts that it is accepted and all of its requests are complete.
#[track_caller]
fn bodies(stream: &str) -> Vec<String> {
    let (record, framing) = read([stream.as_bytes()]);
    assert_eq!(record.refused, None, "{stream:?}");
    assert!(framing.is_between_requests(), "{stream:?}");
    assert_eq!(framing.begun(), record.requests.len(), "{stream:?}");
    let text = |request: Request| {
        assert!(request.is_whole, "{stream:?}");
        String::from_utf8(request.body).expect("a body of text")
    };
    record.requests.into_iter().map(text).collect()
}

/// A request line with what follows, a request with one more field, one with a chunked body, and any stream.
const HEAD: &str = "GET / HTTP/1.1\r\n{}";
const FIELD: &str = "POST / HTTP/1.1\r\nHost: x\r\n{}\r\n\r\n";
const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{}";
const ANY: &str = "{}";

/// The rules: the reason, a stream with a gap, and what is put into the gap. The byte after the `^` is refused.
const REFUSED: [(Ambiguity, &str, &[&str]); 35] = [
    // A length beside a coding, in either order.
    (Ambiguity::LengthAndCoding, FIELD, &["Content-Length: 5\r\nTransfer-Encoding^: chunked"]),
    (Ambiguity::LengthAndCoding, FIELD, &["Transfer-Encoding: chunked\r\nContent-Length^: 5"]),
    // A second length, equal or not.
    (
        Ambiguity::Lengths,
        FIELD,
        &["Content-Length: 5\r\ncontent-length^: 5", "Content-Length: 5\r\ncontent-length^: 6"],
    ),
    // A length that is not one plain number.
    (
        Ambiguity::Length,
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        &[
            "1^, 1", "^+1", "^-1", "1^.0", "1 ^1", "^", "^abc", "0^x1", "^\"1\"", "1844674407370955161^6",
            "1^;",
        ],
    ),
    // A coding other than `chunked`.
    (
        Ambiguity::Coding,
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {}\r\n\r\n",
        &[
            "^gzip, chunked", "chunked^, chunked", "^xchunked", "chunked^x", "^identity", "chunk^",
            "chunked ^x", "^\"chunked\"", "^\x0bchunked", "chunked^;q=1",
        ],
    ),
    // A second coding, and one in HTTP/1.0.
    (Ambiguity::Codings, FIELD, &["Transfer-Encoding: chunked\r\nTransfer-Encoding^: chunked"]),
    (Ambiguity::Codings, ANY, &["POST / HTTP/1.0\r\nTransfer-Encoding^: chunked\r\n\r\n"]),
    // A bare line feed or carriage return, wherever it stands.
    (
        Ambiguity::BareLf,
        ANY,
        &["GET / HTTP/1.1^\nHost: x\r\n\r\n", "GET /^\n HTTP/1.1\r\n", "^\nGET / HTTP/1.1\r\n"],
    ),
    (
        Ambiguity::BareLf,
        HEAD,
        &["^\nHost: x\r\n\r\n", "Host: x^\n\r\n", "Host: x\r\n^\n", "Ho^\nst: x\r\n\r\n"],
    ),
    (Ambiguity::BareLf, FIELD, &["Content-Length: 0^\n", "Transfer-Encoding: chunked^\n"]),
    (
        Ambiguity::BareLf,
        CHUNKED,
        &[
            "1^\na\r\n0\r\n\r\n", "1\r\na^\n0\r\n\r\n", "0^\n\r\n", "0\r\n^\n", "0\r\nX: y^\n\r\n",
            "1;a^\nb\r\na\r\n",
        ],
    ),
    (Ambiguity::BareCr, ANY, &["GET / HTTP/1.1\r^\rHost: x\r\n\r\n", "\r^GET / HTTP/1.1\r\n"]),
    (Ambiguity::BareCr, HEAD, &["Host: x\r^y\r\n\r\n", "Host: x\r\n\r^x"]),
    (
        Ambiguity::BareCr,
        CHUNKED,
        &[
            "1\r^a\r\n0\r\n\r\n", "1\r\na\r^0\r\n\r\n", "0\r^\r\n", "0\r\n\r^x", "0\r\nX: y\r^z",
            "1;a\r^b\r\n",
        ],
    ),
    (Ambiguity::Version, ANY, &["GET /^\r HTTP/1.1\r\n"]),
    // A zero byte in heads and chunk lines.
    (Ambiguity::Nul, ANY, &["GET /^\0 HTTP/1.1\r\nHost: x\r\n\r\n"]),
    (Ambiguity::Nul, HEAD, &["Host: x^\0\r\n\r\n", "Ho^\0st: x\r\n\r\n", "^\0Host: x\r\n\r\n"]),
    (Ambiguity::Nul, CHUNKED, &["1^\0\r\na\r\n", "1;^\0\r\na\r\n", "0\r\nX: ^\0\r\n"]),
    // A folded field.
    (Ambiguity::Folding, HEAD, &["Host: x\r\nX: y\r\n^ z\r\n\r\n", "^\tHost: x\r\n\r\n"]),
    (Ambiguity::Folding, CHUNKED, &["0\r\nX: y\r\n^ z\r\n\r\n"]),
    // White space before a colon, and what is no name.
    (Ambiguity::Name, HEAD, &["Host^ : x\r\n\r\n", "^: x\r\n\r\n", "Ho^\rst: x\r\n\r\n"]),
    (Ambiguity::Name, FIELD, &["Content-Length^\t: 5", "Transfer^\x0bEncoding: chunked", "nonsense^"]),
    (Ambiguity::Name, CHUNKED, &["0\r\nX^ : y\r\n\r\n"]),
    // One host is required in HTTP/1.1, and several are refused in any.
    (Ambiguity::NoHost, ANY, &["GET / HTTP/1.1\r\n\r^\n", "GET http://x/ HTTP/1.1\r\nX: y\r\n\r^\n"]),
    (Ambiguity::Hosts, "GET / HTTP/{}\r\nHost: x\r\nhOST^: x\r\n\r\n", &["1.0", "1.1"]),
    // A host that is none, at the byte that says so.
    (Ambiguity::Host, "GET / HTTP/1.0\r\nHost:{}\r\n\r\n", NO_HOSTS),
    (Ambiguity::Host, "GET / HTTP/1.1\r\nHost: {}\r\n\r\n", NO_HOSTS),
    (Ambiguity::Host, "GET / HTTP/1.1\r\nHost:\t  {}\r\n\r\n", NO_HOSTS),
    // A line that is no request of HTTP/1.
    (
        Ambiguity::Version,
        ANY,
        &[
            "GET / HTTP/2.0^\r\n", "GET /^\r\n", "GET / HTTP/1.1 ^\r\n", "GET / http/1.1^\r\n",
            "GET / HTTP/1.10^\r\n", "PRJ * HTTP/2.0^\r\n",
        ],
    ),
    // A fragment in the target.
    (Ambiguity::Fragment, ANY, FRAGMENTS),
    // A malformed size of a chunk, a chunk longer than its size, and a field of framing behind a body.
    (
        Ambiguity::ChunkSize,
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{}\r\na\r\n",
        &["^", "^ 1", "^x", "0^x1", "^-1", "^+1", "1^,", "1 ^1", "1 ^", "0000000000000000^1", "^;a=b"],
    ),
    (Ambiguity::ChunkEnd, CHUNKED, &["1\r\na^b\r\n0\r\n\r\n"]),
    (Ambiguity::Trailer, CHUNKED, &["0\r\nContent-Length^: 1\r\n\r\n"]),
    (Ambiguity::Trailer, CHUNKED, &["0\r\nTransfer-Encoding^: 1\r\n\r\n"]),
    (Ambiguity::Trailer, CHUNKED, &["0\r\nHost^: 1\r\n\r\n"]),
];

const NO_HOSTS: &[&str] = &[
    "a ^b", "a^/b@c", "u^@a", "a:8080^x", "a:9999^9x", "a:6553^6", "^:80", "[::1^", "[::1]^x", "[1:2:3^]",
    "a%4^x", "a%^", "^\"a\"", "a^?b", "a^#b", "http:^//a", "[fe80::1^%25lo]", "^\u{e9}", "a^\u{7f}", "[^]",
    "[v1^]", "a:1 ^2", "a, ^b",
];

const FRAGMENTS: &[&str] = &[
    "GET /^#x HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /x?y^# HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET ^#x HTTP/1.0\r\n\r\n",
    "GET http://x/^#/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "PRI *^# HTTP/1.1\r\n",
    "PRI * ^#\r\n",
];

#[test]
fn each_rule_refuses_at_the_byte_that_breaks_it() {
    let mut failures = Vec::new();
    for (reason, stream, gaps) in REFUSED {
        for gap in gaps {
            failures.extend(failures_of(reason, &stream.replace("{}", gap)));
        }
    }
    for stream in FRAGMENTS {
        let (before, rest) = cut(stream);
        let refused = read([before, rest].concat().as_bytes().chunks(1)).0.refused;
        if refused != Some((before.len(), Ambiguity::Fragment)) {
            failures.push(format!("{stream:?} byte by byte: {refused:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn what_is_like_something_refused_is_accepted() {
    assert_eq!(bodies("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n\0\n\r"), ["\0\n\r"]);
    assert_eq!(bodies("GET / HTTP/1.0\r\n\r\n"), [""]);
    for host in ["", " ", "x", " x:8080 ", "\t[::1]:\t", "my_service", "a%20b", "127.0.0.1:65535", "a,b"] {
        assert_eq!(bodies(&format!("GET / HTTP/1.1\r\nHost:{host}\r\n\r\n")), [""]);
    }
    // `#` is a byte like others in methods, and behind the request line.
    assert_eq!(bodies("#GE#T / HTTP/1.1\r\nHost: x\r\nX#: #y\r\n\r\n"), [""]);
}

fn chunked(body: &str) -> String {
    CHUNKED.replace("{}", body)
}

#[test]
fn sound_requests_of_every_kind_follow_one_another() {
    let length = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:  3 \r\n\r\na\r\n";
    let coding = "POST / HTTP/1.1\r\ntransfer-encoding:\tCHUNKED \r\nhost:\r\n\r\n";
    let chunks = "2\r\n\r\n\r\n0A;a=\"b;c\"\r\n0123456789\r\n1 \t;x\r\n!\r\n000\r\nX-Sum: 1\r\n\r\n";
    let stream = format!("{SOUND}\r\n\r\n{length}{coding}{chunks}{SOUND}{length}PUT / HTTP/1.0\r\n\r\n");
    assert_eq!(bodies(&stream), ["", "a\r\n", "\r\n0123456789!", "", "a\r\n", ""]);
    assert_eq!(bodies("PRI / HTTP/1.1\r\nHost: x\r\n\r\n"), [""]);
    assert_eq!(bodies(""), [""; 0]);
}

#[test]
fn a_message_that_breaks_off_is_no_refusal() {
    for stream in ["G", "GET / HTTP/1.1\r\nHo", &chunked(""), &chunked("5\r\nab"), &chunked("0\r\n\r")] {
        let (record, framing) = read([stream.as_bytes()]);
        assert_eq!(record.refused, None, "{stream:?}");
        assert!(!framing.is_between_requests(), "{stream:?}");
        assert_eq!(framing.is_in_body(), stream.contains("chunked"), "{stream:?}");
        assert_eq!(framing.begun(), 1, "{stream:?}");
    }
}

#[test]
fn an_http_2_connection_passes_untouched() {
    let stream = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\n\r frames \n\n GET / HTTP/1.1\n";
    for pieces in [1, 5, stream.len()] {
        let (record, framing) = read(stream.chunks(pieces));
        assert_eq!(record, Record::default());
        assert!(framing.is_http2() && framing.is_between_requests());
    }
    let (record, framing) = read([b"PRI * HTTP/2.0\r\nHost: x\r\n\r\n".as_slice()]);
    assert_eq!(record.refused, Some((16, Ambiguity::Version)), "only at the beginning, and whole");
    assert!(!framing.is_http2());
}
