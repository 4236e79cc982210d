//! Random requests made of the contract's operations: valid ones with an invalid part, invalid ones with a
//! valid part, and noise.

use std::sync::LazyLock;

use heck::ToSnakeCase as _;
use mesh_oracles::{Leaf, leaves};
use mesh_tests::cases;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use prost_reflect::{Kind, MessageDescriptor};
use proto_msgs::{Contract, Method, OperationInfo, Segment};
use rand::{Rng, rngs::SmallRng};

use crate::request_fuzzing::values::{self, pick, word};

/// A request and what its answer may be.
pub(crate) struct FuzzedRequest {
    pub(crate) bytes: Vec<u8>,
    /// Whether both sides agree on its end, so that there must be an answer and the connection can be reused.
    pub(crate) is_sound: bool,
    /// Whether the answer has no body.
    pub(crate) is_head: bool,
}

const METHODS: &str = "GET GET GET GET GET GET HEAD POST OPTIONS PUT DELETE TRACE BREW get";
const TARGETS: &str =
    "x:80 * http://x http://x/accounts / /health /transaction/ /api/v2/withdrawal/ /api/v2/candle";
const HEADERS: &str = "Accept Accept-Encoding Authorization Cache-Control Connection Content-Encoding \
    Content-Type Cookie Expect Forwarded If-Match If-None-Match If-Range Keep-Alive Origin Prefer Range TE \
    traceparent tracestate Upgrade X-Forwarded-For X-HTTP-Method-Override X-Request-Id grpc-timeout";

/// Requests with whole answers.
static ANSWERED: LazyLock<Vec<(&str, String)>> = LazyLock::new(cases::answered);

/// Ends of heads and bodies whose lengths are wrong.
const WRONG_ENDS: [&str; 12] = [
    "Content-Length: 100\r\n\r\n{}",
    "Content-Length: 1\r\n\r\n{}",
    "Content-Length: 18446744073709551616\r\n\r\n",
    "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: gzip\r\n\r\n{}",
    "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n{}",
    "Transfer-Encoding: chunked\r\n\r\n2\r\n{}",
    ": x\r\n\r\n",
    "X: a\r\n b\r\n\r\n",
    "X: \0\r\n\r\n",
    "",
];

/// A random request, determined by the random numbers alone.
pub(crate) fn fuzzed(dice: &mut SmallRng) -> FuzzedRequest {
    let mut fuzzed = FuzzedRequest { bytes: Vec::new(), is_sound: true, is_head: false };
    match dice.random_range(0..1000) {
        0..700 => {
            let method = word(dice, METHODS);
            let target = target(dice);
            let end = if matches!(method, "POST" | "PUT") { "Content-Length: 2\r\n\r\n{}" } else { "\r\n" };
            fuzzed.bytes = [head(dice, method, &target), end.into()].concat();
            fuzzed.is_head = method == "HEAD";
        }
        700..960 => fuzzed.bytes = submission(dice),
        960..975 => (fuzzed.bytes, fuzzed.is_sound) = (values::random(dice, 400), false),
        _ => {
            let method = word(dice, "GET POST");
            fuzzed.bytes = head(dice, method, b"/transaction");
            fuzzed.bytes.extend_from_slice(pick(dice, &WRONG_ENDS).as_bytes());
            if dice.random_ratio(1, 2) {
                values::mutate(dice, &mut fuzzed.bytes);
            }
            fuzzed.is_sound = false;
        }
    }
    fuzzed
}

fn operation(dice: &mut SmallRng, method: Method) -> &'static OperationInfo {
    let all: Vec<_> = Contract::get().operations().iter().filter(|row| row.method == method).collect();
    pick(dice, &all)
}

fn submission(dice: &mut SmallRng) -> Vec<u8> {
    let operation = operation(dice, Method::Post);
    let path: String = operation.path.iter().map(|segment| segment_text(dice, segment)).collect();
    let body = match dice.random_range(0..4000) {
        0 => vec![b'x'; (2 << 20) + 1],
        1..2000 => {
            let mut body = message(dice, &operation.request, 4).into_bytes();
            values::mutate(dice, &mut body);
            body
        }
        2000..3400 => message(dice, &operation.request, 4).into_bytes(),
        3400..3600 => nested(dice),
        _ => values::random(dice, 300),
    };
    let mut bytes = head(dice, "POST", path.as_bytes());
    if dice.random_ratio(1, 3) {
        bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        let longest = dice.random_range(1..=body.len().max(1)).max(body.len() / 50 + 1);
        for piece in body.chunks(longest) {
            bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            bytes.extend([piece, b"\r\n"].concat());
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
    } else {
        bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
        bytes.extend(body);
    }
    bytes
}

/// Deep nesting, closed or not.
fn nested(dice: &mut SmallRng) -> Vec<u8> {
    let depth = dice.random_range(1..2000);
    let (open, close) = pick(dice, &[("[", "]"), ("{\"tx\":", "}"), ("{\"x\":[", "]}")]);
    let closed = if dice.random_ratio(1, 2) { depth } else { dice.random_range(0..depth) };
    format!("{}{}", open.repeat(depth), close.repeat(closed)).into_bytes()
}

/// The JSON of a message with some of its fields, each with a value that it may have or not, and at most so
/// many levels.
fn message(dice: &mut SmallRng, descriptor: &MessageDescriptor, depth: usize) -> String {
    let mut members = Vec::new();
    for field in descriptor.fields() {
        let name =
            if dice.random_ratio(1, 2) { field.json_name().to_owned() } else { field.name().to_owned() };
        let value = match field.kind() {
            Kind::Message(inner) if depth > 0 && dice.random_ratio(9, 10) => message(dice, &inner, depth - 1),
            _ => scalar(dice),
        };
        if dice.random_ratio(5, 6) {
            members.push(format!("\"{name}\":{value}"));
        }
        if dice.random_ratio(1, 30) {
            members.push(format!("\"{}\":{}", word(dice, "__proto__ @type TX x"), scalar(dice)));
        }
    }
    format!("{{{}}}", members.join(","))
}

/// A JSON value that is no object.
fn scalar(dice: &mut SmallRng) -> String {
    match dice.random_range(0..10) {
        0 => word(dice, "null true false nul True [] [1] {}").to_owned(),
        1 => dice.random::<u64>().to_string(),
        2 => format!("{}e{}", dice.random_range(-99..99), dice.random_range(-400..400)),
        3 => "9".repeat(dice.random_range(1..400)),
        4 => word(dice, "- +1 01 1. .5 0x1 -0 0 1 2 3").to_owned(),
        5 => format!("\"{}\"", word(dice, "\\u0000 \\ud800 \\q \\\" \\u12")),
        _ => format!("\"{}\"", String::from_utf8_lossy(&values::value(dice))),
    }
}

/// Request line and headers, without the empty line after them.
fn head(dice: &mut SmallRng, method: &str, target: &[u8]) -> Vec<u8> {
    let mut head = [method.as_bytes(), b" ", target, b" HTTP/1.1\r\nHost: x\r\n"].concat();
    for _ in 0..dice.random_range(0..4) {
        let name = word(dice, HEADERS);
        let mut value = values::value(dice);
        // Line breaks and control characters would end the header; all other bytes are allowed.
        value.retain(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f));
        value.truncate(2000);
        head.extend([name.as_bytes(), b": ", &value, b"\r\n"].concat());
    }
    head
}

fn segment_text(dice: &mut SmallRng, segment: &Segment) -> String {
    match segment {
        Segment::Fixed(text) => format!("/{text}"),
        Segment::Field(_) => format!("/{}", encoded(dice)),
    }
}

/// Path and query of a read, with its parameters or those of another one.
fn target(dice: &mut SmallRng) -> Vec<u8> {
    let operation = operation(dice, Method::Get);
    let mut target: String = match dice.random_range(0..10) {
        0 => format!("{}{}", word(dice, TARGETS), encoded(dice)),
        1 => word(dice, TARGETS).to_owned(),
        2..6 => operation.path.iter().map(|segment| segment_text(dice, segment)).collect(),
        _ => ANSWERED[dice.random_range(0..ANSWERED.len())].1.clone(),
    };
    if dice.random_ratio(1, 10) {
        let at = dice.random_range(1..=target.len());
        target.insert_str(at, &encoded(dice));
    }
    let mut names = vec!["pretty".to_owned(), String::new(), "pagination..first".to_owned()];
    // In both spellings.
    for Leaf { name, .. } in leaves(&operation.request) {
        names.extend([name.split('.').map(str::to_snake_case).collect::<Vec<_>>().join("."), name]);
    }
    for _ in 0..dice.random_range(0..5) {
        let mark = if target.contains('?') { '&' } else { '?' };
        let name = if dice.random_ratio(1, 12) {
            encoded(dice)
        } else {
            names[dice.random_range(0..names.len())].clone()
        };
        target += &format!("{mark}{name}={}", encoded(dice));
    }
    let mut target = target.into_bytes();
    if dice.random_ratio(1, 30) {
        // Bytes that should be escaped, without those that end the request line.
        let odd = values::value(dice);
        target.extend(odd.into_iter().filter(|byte| *byte > b' ' && *byte != 0x7f && *byte != b'#'));
    }
    target
}

/// A percent-encoded value, sometimes with a broken escape.
fn encoded(dice: &mut SmallRng) -> String {
    let mut text = percent_encode(&values::value(dice), NON_ALPHANUMERIC).to_string();
    if dice.random_ratio(1, 30) {
        text += word(dice, "% %0 %zz %u0041 %%32%35 + ; %2500");
    }
    text
}
