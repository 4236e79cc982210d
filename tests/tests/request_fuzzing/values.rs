//! Random values: unusual ones, valid ones, and valid ones with small mutations.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use mesh_tests::fixture::{ASSET, MARKET, NODE, ORACLE_SPEC, PARTY, UNKNOWN_ID, WITHDRAWAL};
use rand::{Rng, rngs::SmallRng, seq::IndexedRandom};

/// Texts known to break parsers.
const ODD: &[&[u8]] = &[
    b"",
    b" ",
    b"\0",
    b"\xff",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x80\xae",
    b"\r\n",
    b"\r\nX-Injected: 1",
    b"\x1b[31m",
    b"\x7f",
    b"'",
    b"' OR 1=1 --",
    b"'; DROP TABLE accounts; --",
    b"\"",
    b"\\",
    b"%",
    b"%s%n",
    b"${jndi:ldap://x}",
    b"{{7*7}}",
    b"../../../../etc/passwd",
    b"<script>alert(1)</script>",
    b"null",
    b"undefined",
    b"NaN",
    b"Infinity",
    b"true",
    b"TRUE",
    b"0",
    b"-0",
    b"-1",
    b"1.5",
    b"1e309",
    b"0x10",
    b"00001",
    b"2147483648",
    b"-2147483649",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"99999999999999999999999999999999999999999999",
    b"network",
    b"NETWORK",
    "\u{661}\u{662}".as_bytes(),
    "🦀".as_bytes(),
    "İ".as_bytes(),
    "a\u{300}\u{301}\u{302}".as_bytes(),
];

/// Ids of the fixture, and one that it does not have.
const IDS: [&str; 7] = [ASSET, MARKET, UNKNOWN_ID, NODE, ORACLE_SPEC, PARTY, WITHDRAWAL];

/// Numbers that are valid or at a limit for some parameter.
const NUMBERS: [&str; 10] =
    ["0", "1", "2", "3", "5000", "5001", "2147483647", "1687255200000000000", "9223372036854775807", "-1"];

/// Texts that are valid or special for some parameter.
const WORDS: [&str; 16] = [
    "true",
    "false",
    "VOTE",
    "network",
    "trades_candle_1_hour_",
    "trades_candle_block_",
    "PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING",
    "TABLE_TRADES",
    "TYPE_SYNC",
    "TX_VERSION_V3",
    "AQI=",
    "ed25519",
    "pup",
    "candle",
    "epochReward",
    "delegation",
];

/// A value of any kind.
pub(crate) fn value(dice: &mut SmallRng) -> Vec<u8> {
    let mut value = match dice.random_range(0..12) {
        0..3 => pick(dice, &IDS).into(),
        3..5 => pick(dice, &NUMBERS).into(),
        5 => pick(dice, &WORDS).into(),
        6 => format!("{}{}", pick(dice, &WORDS[4..6]), pick(dice, &IDS)).into_bytes(),
        7..9 => cursor(dice).into_bytes(),
        9 => random(dice, 40),
        10 if dice.random_ratio(1, 20) => vec![b'a'; dice.random_range(100..9000)],
        _ => ODD.choose(dice).copied().unwrap_or_default().to_vec(),
    };
    if dice.random_ratio(1, 4) {
        mutate(dice, &mut value);
    }
    value
}

/// A cursor of some list, mostly well-formed.
fn cursor(dice: &mut SmallRng) -> String {
    let keys: Vec<serde_json::Value> = (0..dice.random_range(0..6))
        .map(|_| match dice.random_range(0..5) {
            0 => serde_json::json!(pick(dice, &IDS)),
            1 => String::from_utf8_lossy(ODD.choose(dice).copied().unwrap_or_default()).into(),
            2 => serde_json::json!(dice.random::<i64>()),
            _ => serde_json::json!(pick(dice, &NUMBERS)),
        })
        .collect();
    URL_SAFE_NO_PAD.encode(serde_json::json!({"o": pick(dice, &WORDS[12..]), "k": keys}).to_string())
}

/// Changes one or two bytes, truncates, doubles, or appends.
pub(crate) fn mutate(dice: &mut SmallRng, bytes: &mut Vec<u8>) {
    for _ in 0..dice.random_range(1..3) {
        let at = dice.random_range(0..=bytes.len());
        match dice.random_range(0..6) {
            0 if at < bytes.len() => bytes[at] = dice.random(),
            1 if at < bytes.len() => bytes[at] ^= 1 << dice.random_range(0..8),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, dice.random()),
            4 if bytes.len() < 4096 => bytes.extend_from_within(at..),
            _ => {
                let odd = ODD.choose(dice).copied().unwrap_or_default();
                bytes.splice(at..at, odd.iter().copied());
            }
        }
    }
}

/// Up to this many random bytes.
pub(crate) fn random(dice: &mut SmallRng, at_most: usize) -> Vec<u8> {
    (0..dice.random_range(0..=at_most)).map(|_| dice.random()).collect()
}

/// A random one of some texts.
pub(crate) fn pick<'a>(dice: &mut SmallRng, from: &[&'a str]) -> &'a str {
    from.choose(dice).copied().unwrap_or_default()
}
