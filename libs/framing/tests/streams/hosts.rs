//! Hosts: each form, random texts compared with a parser by splitting, and accepted ones with the `http`
//! crate.

use std::net::Ipv6Addr;

use hyper::http::uri::Authority;
use mesh_framing::is_host;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};

use crate::run;

/// The parts of random texts, most of which are valid somewhere in a host.
const PIECES: [&str; 44] = [
    "a", "f", "x", "Z", "v", "V1", "1", "12", "255", "256", "01", "65535", "65536", "80", "ffff", "fffff",
    "0", "::", ":", ":", ".", ".", "[", "]", "[::1]", "[v1.a]", "%41", "%", "%4", "-", "_", "~",
    "!$&'()*+,;=", "@", "/", "?", "#", "\t", "\\", "\"", "<>", "é", "1.2.3.4", " ",
];

const LONGEST_ADDRESS: &str = "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]";

/// `999.1.2.3.4` is not an IPv4 address, but a registered name.
const HOSTS: [&str; 36] = [
    "x", "X", "localhost", "gateway.example.org", "gateway.example.org.", "my_service",
    "xn--bcher-kva.example", "a-b.c-d", "127.0.0.1", "999.1.2.3.4", "1", "~!$&'()*+,;=", "b%C3%BCcher",
    "%41", "x:", "x:0", "x:80", "x:00080", "x:65535", "127.0.0.1:8080", "[::]", "[::1]", "[::1]:8080",
    "[::1]:", "[2001:db8::1]", "[2001:DB8:0:0:0:0:0:1]:443", "[1:2:3:4:5:6:7::]", "[::ffff:192.0.2.1]",
    "[1:2:3:4:5:6:1.2.3.4]", LONGEST_ADDRESS, "[v1.x]", "[V1F.a:b!$]:1", "[vF.:]", "a,b", "a;b", "x.:1",
];

const ODD: [&str; 59] = [
    "a\tb", "a/b", "a/b@c", "u@a", "u:p@a", "@", "a@", "a?b", "a#b", "http://a", "a\\b", "a\"", "a<", "a|b",
    "a^b", "a`b", "{a}", "é", "a\u{7f}", "a\u{1}", "a\0", "%", "a%", "a%4", "a%4x", "a%x4", "a%%41", ":",
    ":80", "a:b", "a:8080x", "a:99999x", "a:65536", "a:99999", "a:18446744073709551617", "a:-1", "a:+1",
    "a:1:2", "::1", "[", "]", "[]", "[::1", "::1]", "[::1]x", "[::1]]", "[1::2::3]", "[fe80::1%25eth0]",
    "[127.0.0.1]", "[v1]", "[v.x]", "[v1.]", "", " ", "a b", " a", "a ", "a: 1", "a:1 ",
];

#[test]
fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
    for host in HOSTS {
        assert!(is_host(host.as_bytes()) && by_parts(host), "{host:?}");
    }
    for odd in ODD {
        assert!(!is_host(odd.as_bytes()) && !by_parts(odd), "{odd:?}");
    }
    assert!(!is_host(b"a\xff") && !is_host(b"\x80"));
}

#[test]
fn any_text_is_judged_as_by_a_reader_that_cuts_it_into_its_parts() {
    let (seed, texts) = run(300_000);
    let mut taken = 0;
    for turn in 0..texts {
        let seed = seed.wrapping_add(turn);
        let mut dice = SmallRng::seed_from_u64(seed);
        let mut text = String::new();
        if dice.random_ratio(1, 2) {
            text += HOSTS.choose(&mut dice).expect("there are hosts");
        }
        for _ in 0..dice.random_range(0..5) {
            let mut at = dice.random_range(0..=text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.insert_str(at, PIECES.choose(&mut dice).expect("there are pieces"));
        }
        let is_taken = is_host(text.as_bytes());
        assert_eq!(is_taken, by_parts(&text), "with MESH_TEST_SEED={seed}: {text:?}");
        taken += u64::from(is_taken);
        // Other readers find the same name and port in it. This one takes no escapes and no addresses to
        // come.
        if is_taken && !text.contains('%') && !text.contains("[v") && !text.contains("[V") {
            let read: Authority = text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"));
            let (host, port) = match text.rsplit_once(':') {
                Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
                _ => (text.as_str(), None),
            };
            assert_eq!((read.host(), read.port_u16()), (host, port), "{text:?}");
        }
    }
    assert!(taken > texts / 50 && taken < texts, "{taken} of {texts} are hosts");
}

/// An independent parser of the grammar, by splitting.
fn by_parts(text: &str) -> bool {
    let (is_host, behind) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(None) => return false,
        Some(Some((literal, behind))) => (is_literal(literal), behind),
        None => {
            let (name, behind) = text.split_at(text.find(':').unwrap_or(text.len()));
            (is_name(name), behind)
        }
    };
    let is_port = |digits: &str| {
        let digits_only = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.is_empty() || digits_only && digits.parse::<u128>().unwrap_or(u128::MAX) <= 65_535
    };
    is_host && (behind.is_empty() || behind.strip_prefix(':').is_some_and(is_port))
}

fn is_literal(text: &str) -> bool {
    match text.strip_prefix(['v', 'V']).map(|rest| rest.split_once('.')) {
        None => text.parse::<Ipv6Addr>().is_ok(),
        Some(None) => false,
        Some(Some((version, address))) => {
            let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_version && !address.is_empty() && address.bytes().all(|byte| byte == b':' || is_plain(byte))
        }
    }
}

fn is_name(text: &str) -> bool {
    let mut pieces = text.split('%');
    let is_plain = |text: &str| text.bytes().all(is_plain);
    let is_escaped = |piece: &str| {
        let escape = piece.as_bytes().get(..2);
        escape.is_some_and(|escape| escape.iter().all(u8::is_ascii_hexdigit)) && is_plain(&piece[2..])
    };
    !text.is_empty() && pieces.next().is_some_and(is_plain) && pieces.all(is_escaped)
}

/// `unreserved` or one of `sub-delims`.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}
