//! Random values: unusual ones, valid ones, and valid ones with small mutations.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use mesh_tests::{ASSET, MARKET, NODE, ORACLE_SPEC, PARTY, UNKNOWN_ID, WITHDRAWAL};
use rand::{Rng, rngs::SmallRng, seq::IndexedRandom};
use serde_json::json;

/// Texts known to break parsers, between tildes.
const ODD: &[u8] = b"~ ~\0~\xff~\xc0\xaf~\xed\xa0\x80~\xf4\x90\x80\x80~\xe2\x80\xae~\r\n~\r\nX-Injected: 1~\x1b[31m~\
    \x7f~'~' OR 1=1 --~'; DROP TABLE accounts; --~\"~\\~%~%s%n~${jndi:ldap://x}~{{7*7}}~../../../etc/passwd~\
    <script>alert(1)</script>~null~undefined~NaN~Infinity~true~TRUE~0~-0~-1~1.5~1e309~0x10~00001~2147483648~\
    -2147483649~9223372036854775807~9223372036854775808~-9223372036854775808~18446744073709551616~\
    99999999999999999999999999999999999999999999~NETWORK~\xd9\xa1\xd9\xa2~\xf0\x9f\xa6\x80~\xc4\xb0~a\xcc\x80";

/// Ids of the fixture, and one that it does not have.
const IDS: [&str; 7] = [ASSET, MARKET, UNKNOWN_ID, NODE, ORACLE_SPEC, PARTY, WITHDRAWAL];

/// Texts and numbers that are valid or at a limit for some parameter.
const WORDS: &str = "0 1 2 3 5000 5001 2147483647 1687255200000000000 9223372036854775807 true false VOTE \
    network PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING TABLE_TRADES TYPE_SYNC TX_VERSION_V3 AQI= ed25519 \
    handling=strict";

/// A value of any kind.
pub(crate) fn value(dice: &mut SmallRng) -> Vec<u8> {
    let mut value = match dice.random_range(0..12) {
        0..3 => pick(dice, &IDS).into(),
        3..5 => word(dice, WORDS).into(),
        5 => format!("trades_candle_{}_{}", word(dice, "1_hour block x"), pick(dice, &IDS)).into_bytes(),
        6..8 => cursor(dice).into_bytes(),
        8 => random(dice, 40),
        9 if dice.random_ratio(1, 20) => vec![b'a'; dice.random_range(100..9000)],
        _ => odd(dice).to_vec(),
    };
    if dice.random_ratio(1, 4) {
        mutate(dice, &mut value);
    }
    value
}

fn odd(dice: &mut SmallRng) -> &'static [u8] {
    let all: Vec<&[u8]> = ODD.split(|byte| *byte == b'~').collect();
    all.choose(dice).copied().unwrap_or_default()
}

/// A cursor of some list, mostly well-formed.
fn cursor(dice: &mut SmallRng) -> String {
    let keys: Vec<serde_json::Value> = (0..dice.random_range(0..6))
        .map(|_| match dice.random_range(0..4) {
            0 => json!(pick(dice, &IDS)),
            1 => String::from_utf8_lossy(odd(dice)).into(),
            2 => json!(dice.random::<i64>()),
            _ => json!(word(dice, WORDS)),
        })
        .collect();
    let list = word(dice, "pup candle epochReward delegation market trade");
    URL_SAFE_NO_PAD.encode(json!({"o": list, "k": keys}).to_string())
}

/// Changes one or two bytes, truncates, doubles, or inserts.
pub(crate) fn mutate(dice: &mut SmallRng, bytes: &mut Vec<u8>) {
    for _ in 0..dice.random_range(1..3) {
        let at = dice.random_range(0..=bytes.len());
        match dice.random_range(0..6) {
            0 if at < bytes.len() => bytes[at] = dice.random(),
            1 if at < bytes.len() => bytes[at] ^= 1 << dice.random_range(0..8),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, dice.random()),
            4 if bytes.len() < 4096 => bytes.extend_from_within(at..),
            _ => drop(bytes.splice(at..at, odd(dice).iter().copied())),
        }
    }
}

/// Up to this many random bytes.
pub(crate) fn random(dice: &mut SmallRng, at_most: usize) -> Vec<u8> {
    (0..dice.random_range(0..=at_most)).map(|_| dice.random()).collect()
}

/// A random one of some texts.
pub(crate) fn pick<T: Copy>(dice: &mut SmallRng, from: &[T]) -> T {
    *from.choose(dice).expect("there is a choice")
}

/// A random one of the words of a text.
pub(crate) fn word(dice: &mut SmallRng, text: &'static str) -> &'static str {
    let words: Vec<&str> = text.split(' ').collect();
    pick(dice, &words)
}
