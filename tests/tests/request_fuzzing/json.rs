//! Random bodies: JSON of submissions, valid or nearly so.

use rand::{Rng, rngs::SmallRng};

use crate::request_fuzzing::values;

/// A valid submission.
const SUBMISSION: &str = r#"{"tx":{"inputData":"AQIDBA==","signature":{"value":"00","algo":"ed25519","version":1},"pubKey":"b1b1","version":"TX_VERSION_V3","pow":{"tid":"77","nonce":"18446744073709551615"}},"type":"TYPE_SYNC"}"#;

const KEYS: [&str; 18] = [
    "tx",
    "type",
    "inputData",
    "input_data",
    "signature",
    "value",
    "algo",
    "version",
    "pubKey",
    "pub_key",
    "address",
    "pow",
    "tid",
    "nonce",
    "",
    "__proto__",
    "@type",
    "TX",
];

/// A body.
pub(crate) fn body(dice: &mut SmallRng) -> Vec<u8> {
    match dice.random_range(0..100) {
        0..35 => {
            let mut body = SUBMISSION.as_bytes().to_vec();
            values::mutate(dice, &mut body);
            body
        }
        35..85 => {
            let mut body = Vec::new();
            let depth = dice.random_range(0..6);
            any(dice, depth, &mut body);
            body
        }
        85..90 => nested(dice),
        90 => vec![b' '; dice.random_range(0..100_000)],
        _ => values::random(dice, 300),
    }
}

/// Deep nesting, closed or not.
fn nested(dice: &mut SmallRng) -> Vec<u8> {
    let depth = dice.random_range(1..2000);
    let (open, close) = [("[", "]"), ("{\"tx\":", "}"), ("{\"x\":[", "]}")][dice.random_range(0..3)];
    let closed = if dice.random_ratio(1, 2) { depth } else { dice.random_range(0..depth) };
    format!("{}{}", open.repeat(depth), close.repeat(closed)).into_bytes()
}

/// A value with this many levels below it.
fn any(dice: &mut SmallRng, depth: usize, out: &mut Vec<u8>) {
    match dice.random_range(0..12) {
        0..6 if depth > 0 => list(dice, b"{}", out, |dice, out| {
            text(dice, out);
            out.push(b':');
            any(dice, depth - 1, out);
        }),
        6 if depth > 0 => list(dice, b"[]", out, |dice, out| any(dice, depth - 1, out)),
        7 => out.extend_from_slice(values::pick(dice, &["null", "true", "false", "nul", "True"]).as_bytes()),
        8 | 9 => out.extend(number(dice)),
        _ => text(dice, out),
    }
}

fn list(dice: &mut SmallRng, ends: &[u8; 2], out: &mut Vec<u8>, item: impl Fn(&mut SmallRng, &mut Vec<u8>)) {
    out.push(ends[0]);
    for at in 0..dice.random_range(0..5) {
        if at > 0 || dice.random_ratio(1, 100) {
            out.push(b',');
        }
        item(dice, out);
    }
    out.push(ends[1]);
}

fn number(dice: &mut SmallRng) -> Vec<u8> {
    match dice.random_range(0..6) {
        0 => dice.random::<u64>().to_string().into(),
        1 => dice.random::<i32>().to_string().into(),
        2 => format!("{}e{}", dice.random_range(-99..99), dice.random_range(-400..400)).into(),
        3 => format!("{}.{}", dice.random::<i8>(), dice.random::<u32>()).into(),
        4 => "9".repeat(dice.random_range(1..400)).into(),
        _ => values::pick(dice, &["-", "+1", "01", "1.", ".5", "0x1", "-0", "0", "1", "2", "3"]).into(),
    }
}

fn text(dice: &mut SmallRng, out: &mut Vec<u8>) {
    out.push(b'"');
    match dice.random_range(0..10) {
        0..6 => out.extend_from_slice(values::pick(dice, &KEYS).as_bytes()),
        6 => out.extend_from_slice(
            values::pick(dice, &["\\u0000", "\\ud800", "\\q", "\\\"", "\\u12"]).as_bytes(),
        ),
        _ => out.extend(values::value(dice)),
    }
    out.push(b'"');
}
