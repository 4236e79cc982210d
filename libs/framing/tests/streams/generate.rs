//! Generates streams of requests, most of them with irregularities.

use rand::{Rng, rngs::SmallRng, seq::IndexedRandom};

const LINES: [&str; 15] = [
    "GET / HTTP/1.1", "GET /a?b=c HTTP/1.1", "GET http://x/ HTTP/1.1", "GET /a#b HTTP/1.1",
    "POST /t HTTP/1.1", "POST /t HTTP/1.1", "POST /t HTTP/1.1", "PUT /t HTTP/1.0", "HEAD / HTTP/1.0",
    "OPTIONS * HTTP/1.1", "CONNECT x:80 HTTP/1.1", "GET / HTTP/1.2", "GET /", "PRI * HTTP/2.0",
    "G\x01T  / HTTP/1.1",
];

/// `Host` fields of irregular requests.
const HOSTS: [&str; 22] = [
    "Host: x", "host:\tlocalhost:8080 \t", "Host: 127.0.0.1", "Host:[::1]:80", "Host: [v1.a:b]",
    "Host: a%20b:", "Host:", "Host: \t ", "Host: a b", "Host: a/b@c", "Host: u@x", "Host: :80",
    "Host: x:99999", "Host: x:80x", "Host: x:8 0", "Host: [::1", "Host: [::1]x", "Host: [1:2:3]",
    "Host: [::1%25lo]", "Host: a%2", "Host: http://x/", "Host: \u{e9}",
];

const FIELDS: [&str; 34] = [
    "Host: x", "host:x", "HOST:\tx, y ", "Host:", "Host : x", "Content-Length: 0", "Content-Length: 5",
    "content-length:5 ", "Content-Length: +5", "Content-Length: 5, 5", "Content-Length: 0x5",
    "Content-Length: 5 5", "Content-Length:", "Content-Length: 18446744073709551615",
    "Content-Length: 18446744073709551616", "Content-Length\t: 5", "Transfer-Encoding: chunked",
    "transfer-encoding:CHUNKED ", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: identity", "Transfer-Encoding: xchunked", "Transfer-Encoding: chunkedx",
    "Transfer-Encoding: \"chunked\"", "Transfer-Encoding:\x0bchunked", "Transfer_Encoding: chunked",
    "Expect: 100-continue", "Connection: close", "Connection: keep-alive", "Upgrade: x", "Accept: */*",
    "X-Long: abcdefghijklmnopqrstuvwxyz", " folded", ": nameless",
];

const SIZES: [&str; 14] = [
    "0", "5", "05", "5 ", "5;a=b", "5 ;a=\"b\"", "a", "A", "0x5", "-5", "", "5\n", "5;a\nb",
    "00000000000000005",
];

const SPECIAL: &[u8] = b"\r\n\0 \t:;,0159afAFGHcT[]%@/\x0b\x7f\x80\xff";

/// Generates a stream.
pub(crate) fn stream(dice: &mut SmallRng) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..dice.random_range(1..5) {
        request(dice, &mut stream);
    }
    if dice.random_ratio(1, 2) {
        for _ in 0..dice.random_range(1..4) {
            mutate(dice, &mut stream);
        }
    }
    stream
}

fn pick<'a>(dice: &mut SmallRng, from: &[&'a str]) -> &'a str {
    from.choose(dice).expect("there is a choice")
}

/// Appends a line end, sometimes an invalid one.
fn end_line(dice: &mut SmallRng, into: &mut Vec<u8>) {
    let end = if dice.random_ratio(1, 100) { pick(dice, &["\n", "\r", "\r\r\n", "\n\r"]) } else { "\r\n" };
    into.extend_from_slice(end.as_bytes());
}

/// Appends a request; two of three are valid.
fn request(dice: &mut SmallRng, into: &mut Vec<u8>) {
    let is_odd = dice.random_ratio(1, 3);
    if dice.random_ratio(1, 20) {
        end_line(dice, into);
    }
    let line = if is_odd { pick(dice, &LINES) } else { pick(dice, &LINES[..6]) };
    into.extend_from_slice(line.as_bytes());
    end_line(dice, into);
    let mut fields = vec!["Host: x"];
    let body = dice.random_range(0..3);
    fields.extend([None, Some("Content-Length: 5"), Some("Transfer-Encoding: chunked")][body]);
    if is_odd {
        fields[0] = pick(dice, &HOSTS);
        for _ in 0..dice.random_range(0..3) {
            let at = dice.random_range(0..=fields.len());
            fields.insert(at, pick(dice, &FIELDS));
        }
        if dice.random_ratio(1, 6) {
            fields.remove(0);
        }
    }
    for field in fields {
        into.extend_from_slice(field.as_bytes());
        end_line(dice, into);
    }
    end_line(dice, into);
    match body {
        1 => into.extend_from_slice(b"ab\r\nc"),
        2 => chunks(dice, into, is_odd),
        _ => {}
    }
}

fn chunks(dice: &mut SmallRng, into: &mut Vec<u8>, is_odd: bool) {
    for _ in 0..dice.random_range(0..4) {
        let size = if is_odd { pick(dice, &SIZES) } else { "5" };
        into.extend_from_slice(size.as_bytes());
        end_line(dice, into);
        let data = if size.eq_ignore_ascii_case("a") { "0123456789" } else { "a\r\n0\r" };
        into.extend_from_slice(data.as_bytes());
        end_line(dice, into);
    }
    into.push(b'0');
    end_line(dice, into);
    if dice.random_ratio(1, 4) {
        let trailer = if is_odd { pick(dice, &FIELDS) } else { "X-Sum: 1" };
        into.extend_from_slice(trailer.as_bytes());
        end_line(dice, into);
    }
    end_line(dice, into);
}

/// Changes a random position of the stream.
pub(crate) fn mutate(dice: &mut SmallRng, stream: &mut Vec<u8>) {
    let at = dice.random_range(0..=stream.len());
    let special = *SPECIAL.choose(dice).expect("there are special bytes");
    match dice.random_range(0..5) {
        0 => stream.insert(at, special),
        1 if at < stream.len() => stream[at] = special,
        2 if at < stream.len() => drop(stream.remove(at)),
        3 => stream.truncate(at),
        _ => {
            let piece: Vec<u8> = stream[at..].iter().copied().take(dice.random_range(1..40)).collect();
            let to = dice.random_range(0..=stream.len());
            stream.splice(to..to, piece);
        }
    }
}
