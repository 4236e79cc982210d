//! Random requests: valid ones with an invalid part, invalid ones with a valid part, and noise.

use mesh_tests::cases;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rand::{Rng, rngs::SmallRng};

use crate::request_fuzzing::{json, values};

/// A request and what its answer may be.
pub(crate) struct FuzzedRequest {
    /// The bytes to send.
    pub(crate) bytes: Vec<u8>,
    /// Whether both sides agree on its end, so that there must be an answer and the connection can be reused.
    pub(crate) is_sound: bool,
    /// Whether the answer has no body.
    pub(crate) is_head: bool,
}

/// Characters that are percent-encoded in a query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

const METHODS: [&str; 14] = [
    "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "TRACE", "BREW",
    "get",
];

const SUBMISSIONS: [&str; 4] =
    ["/transaction", "/transaction/check", "/transaction/raw", "/transaction/raw/check"];

const OTHERS: [&str; 13] = [
    "x:80",
    "*",
    "http://x",
    "http://x/accounts",
    "/",
    "/health",
    "/api/v2/networkhistory/export",
    "/api/v2/networkhistory/segments",
    "/api/v2/ledgerentry/export",
    "/transaction/",
    "/api/v2/withdrawal/",
    "/api/v2/oracle/spec/",
    "/api/v2/candle",
];

const PARAMETERS: [&str; 40] = [
    "pagination.first",
    "pagination.last",
    "pagination.after",
    "pagination.before",
    "pagination.newestFirst",
    "pagination.newest_first",
    "pagination",
    "status",
    "approvedBy",
    "approved_by",
    "party",
    "market",
    "candleId",
    "candle_id",
    "fromTimestamp",
    "toTimestamp",
    "filter.assetIds",
    "filter.asset_ids",
    "filter.marketIds",
    "filter.fromEpoch",
    "filter.toEpoch",
    "filter",
    "partyId",
    "party_id",
    "nodeId",
    "epochId",
    "fromBlock",
    "toBlock",
    "table",
    "assetId",
    "dateRange.startTimestamp",
    "dateRange.endTimestamp",
    "id",
    "oracleSpecId",
    "hash",
    "pretty",
    "",
    ".",
    "filter.assetIds.x",
    "pagination..first",
];

const HEADERS: [&str; 26] = [
    "Accept",
    "Accept-Encoding",
    "Authorization",
    "Cache-Control",
    "Connection",
    "Content-Encoding",
    "Content-Type",
    "Cookie",
    "Expect",
    "Forwarded",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "Keep-Alive",
    "Origin",
    "Prefer",
    "Range",
    "TE",
    "traceparent",
    "tracestate",
    "Upgrade",
    "X-Forwarded-For",
    "X-HTTP-Method-Override",
    "X-Request-Id",
    "grpc-timeout",
];

/// A random request, determined by the random numbers alone.
pub(crate) fn fuzzed(dice: &mut SmallRng) -> FuzzedRequest {
    match dice.random_range(0..1000) {
        0..700 => read(dice),
        700..960 => submission(dice),
        960..975 => noise(dice),
        _ => malformed(dice),
    }
}

/// A read operation's request, valid or nearly so.
fn read(dice: &mut SmallRng) -> FuzzedRequest {
    let method = values::pick(dice, &METHODS);
    let target = target(dice);
    let mut bytes = head(dice, method, &target);
    if method == "POST" || method == "PUT" {
        bytes.extend_from_slice(b"Content-Length: 2\r\n\r\n{}");
    } else {
        bytes.extend_from_slice(b"\r\n");
    }
    FuzzedRequest { bytes, is_sound: true, is_head: method == "HEAD" }
}

fn submission(dice: &mut SmallRng) -> FuzzedRequest {
    let path = values::pick(dice, &SUBMISSIONS);
    let body = if dice.random_ratio(1, 4000) { vec![b'x'; (2 << 20) + 1] } else { json::body(dice) };
    let mut bytes = head(dice, "POST", path.as_bytes());
    if dice.random_ratio(1, 3) {
        bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        for piece in body.chunks(dice.random_range(1..=body.len().max(1)).max(body.len() / 50 + 1)) {
            bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
    } else {
        bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
        bytes.extend(body);
    }
    FuzzedRequest { bytes, is_sound: true, is_head: false }
}

/// Random bytes.
fn noise(dice: &mut SmallRng) -> FuzzedRequest {
    FuzzedRequest { bytes: values::random(dice, 400), is_sound: false, is_head: false }
}

/// A request that is truncated, mutated, or has a wrong length.
fn malformed(dice: &mut SmallRng) -> FuzzedRequest {
    let method = values::pick(dice, &["GET", "POST"]);
    let mut bytes = head(dice, method, b"/transaction");
    let lie = values::pick(
        dice,
        &[
            "Content-Length: 100\r\n\r\n{}",
            "Content-Length: 1\r\n\r\n{}",
            "Content-Length: -1\r\n\r\n",
            "Content-Length: 18446744073709551616\r\n\r\n",
            "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: gzip\r\n\r\n{}",
            "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n{}",
            "Transfer-Encoding: chunked\r\n\r\n2\r\n{}",
            "Bad Header: x\r\n\r\n",
            ": x\r\n\r\n",
            "X: a\r\n b\r\n\r\n",
            "X: \0\r\n\r\n",
            "\r\n\r\n\r\n",
            "",
        ],
    );
    bytes.extend_from_slice(lie.as_bytes());
    if dice.random_ratio(1, 2) {
        values::mutate(dice, &mut bytes);
    }
    FuzzedRequest { bytes, is_sound: false, is_head: false }
}

/// Request line and headers, without the empty line after them.
fn head(dice: &mut SmallRng, method: &str, target: &[u8]) -> Vec<u8> {
    let mut head = method.as_bytes().to_vec();
    head.push(b' ');
    head.extend_from_slice(target);
    head.extend_from_slice(b" HTTP/1.1\r\nHost: x\r\n");
    for _ in 0..dice.random_range(0..4) {
        let name = values::pick(dice, &HEADERS);
        // Line breaks and control characters would end the header; all other bytes are allowed.
        let mut value = match name == "Prefer" && dice.random_ratio(1, 2) {
            true => b"handling=strict".to_vec(),
            false => values::value(dice),
        };
        value.retain(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f));
        value.truncate(2000);
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend(value);
        head.extend_from_slice(b"\r\n");
    }
    head
}

/// Path and query.
fn target(dice: &mut SmallRng) -> Vec<u8> {
    let known = cases::answered();
    let (_, path) = &known[dice.random_range(0..known.len())];
    let mut target = match dice.random_range(0..10) {
        0 => format!("{}{}", values::pick(dice, &OTHERS), encoded(dice)),
        1 => values::pick(dice, &OTHERS).to_owned(),
        2 => format!("/{}/{}", encoded(dice), encoded(dice)),
        _ => path.clone(),
    };
    if dice.random_ratio(1, 10) {
        let at = dice.random_range(1..=target.len());
        target.insert_str(at, &encoded(dice));
    }
    let mut mark = if target.contains('?') { '&' } else { '?' };
    for _ in 0..dice.random_range(0..5) {
        let name = match dice.random_ratio(1, 12) {
            true => encoded(dice),
            false => values::pick(dice, &PARAMETERS).to_owned(),
        };
        target += &format!("{mark}{name}={}", encoded(dice));
        mark = '&';
    }
    let mut target = target.into_bytes();
    if dice.random_ratio(1, 30) {
        // Bytes that should be escaped, without those that end the request line.
        let odd =
            values::value(dice).into_iter().filter(|byte| *byte > b' ' && *byte != 0x7f && *byte != b'#');
        target.extend(odd);
    }
    target
}

/// A percent-encoded value, sometimes with a broken escape.
fn encoded(dice: &mut SmallRng) -> String {
    let mut text = percent_encode(&values::value(dice), QUERY).to_string();
    if dice.random_ratio(1, 30) {
        text += values::pick(dice, &["%", "%0", "%zz", "%u0041", "%%32%35", "+", ";", "%2500"]);
    }
    text
}
