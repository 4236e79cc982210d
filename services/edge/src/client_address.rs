//! The address a client is counted by: the connection's peer, or the client that a trusted proxy reports;
//! never what a client reports of itself (S11).

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Most entries of `X-Forwarded-For` that are read, so that made-up ones cost little.
const MAX_PROXIES: usize = 16;

/// Bits of an IPv6 address that one client can choose freely: a household or a machine gets a /64.
const CLIENT_BITS: u32 = 64;

/// An address as limits count it: IPv4 whole, IPv6 by /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address(u128);

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        // A mapped IPv4 address cannot equal a /64 of IPv6, whose lower half is zero.
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits() >> CLIENT_BITS << CLIENT_BITS,
        })
    }
}

impl Address {
    /// A number for this address alone: the halves of an IPv6 and of an IPv4 address never both have a value.
    pub(crate) fn number(self) -> u64 {
        (self.0 >> CLIENT_BITS | self.0 & u128::from(u64::MAX)) as u64
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match IpAddr::V6(Ipv6Addr::from_bits(self.0)).to_canonical() {
            IpAddr::V4(address) => address.fmt(f),
            IpAddr::V6(address) => write!(f, "{address}/{CLIENT_BITS}"),
        }
    }
}

/// Whom limits count a request for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientId {
    /// The clients of an address without a key.
    Address(Address),
    /// Those with this key, by its number.
    Key(u64),
}

impl ClientId {
    /// A number for this client alone.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Address(address) => address.number(),
            Self::Key(number) => number,
        }
    }
}

/// The networks of trusted proxies, whose `X-Forwarded-For` is used; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrustedProxies(Vec<IpNet>);

impl FromStr for TrustedProxies {
    type Err = String;

    /// Reads networks (`10.0.0.0/8`) and single addresses, separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(parse_network).collect::<Result<_, _>>().map(Self)
    }
}

fn parse_network(text: &str) -> Result<IpNet, String> {
    let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    match network {
        Ok(IpNet::V6(network)) if network.addr().to_ipv4_mapped().is_some() => {
            Err(format!("write {text:?} as IPv4"))
        }
        Ok(network) => Ok(network),
        Err(_) => Err(format!("{text:?} is not a network such as 10.0.0.0/8")),
    }
}

impl TrustedProxies {
    /// Whether an address belongs to a trusted proxy.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client of a request: the peer, or, behind a trusted proxy, the right-most untrusted address of
    /// `X-Forwarded-For`. Entries left of it may be forged. Where an entry is malformed, the proxy that sent
    /// it counts as the client.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.contains(peer) {
            return peer;
        }
        let headers = headers.get_all(X_FORWARDED_FOR).into_iter();
        let entries = headers.rev().flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
        let mut nearest = peer;
        for entry in entries.take(MAX_PROXIES) {
            let Some(address) = parse_forwarded(entry) else { return nearest };
            nearest = address;
            if !self.contains(address) {
                return nearest;
            }
        }
        nearest
    }
}

/// An entry of `X-Forwarded-For`; some proxies add the port.
fn parse_forwarded(entry: &[u8]) -> Option<IpAddr> {
    let entry = std::str::from_utf8(entry).ok()?.trim();
    let plain = entry.parse::<IpAddr>();
    let with_port = || entry.parse::<SocketAddr>().map(|address| address.ip());
    let in_brackets = || entry.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    plain.or_else(|_| with_port()).ok().or_else(in_brackets)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn proxies() -> TrustedProxies {
        "10.0.0.0/8, 192.0.2.7 ,fd00::/8".parse().unwrap()
    }

    fn forwarded_for(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn forwarded_addresses_are_believed_from_trusted_proxies_up_to_the_first_untrusted_one() {
        for (peer, lines, client) in [
            ("203.0.113.9", &["198.51.100.1"][..], "203.0.113.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1, 192.0.2.7,10.9.9.9"], "198.51.100.1"),
            ("10.0.0.1", &["1.1.1.1", "198.51.100.1", "fd00::1, 10.2.2.2"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("fd12::1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("fd12::1", &["[2001:db8::1]"], "2001:db8::1"),
            // All are trusted: the first one is the client.
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            // A malformed entry: the proxy that passed it on is the client.
            ("10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1, nonsense, 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &["198.51.100.1,"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1", ""], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1", "\u{e9}"], "10.0.0.1"),
        ] {
            let found = proxies().client(address(peer), &forwarded_for(lines));
            assert_eq!(found.to_canonical(), address(client), "{peer} says {lines:?}");
        }
    }

    #[test]
    fn a_forged_header_does_not_change_the_client() {
        let mut random = SmallRng::seed_from_u64(7);
        let pieces = ["10.0.0.3", "1.2.3.4", "::1", "fd00::1", "x", "", ":", "[", "10.0.0.3:1", "\t", "é"];
        for _ in 0..20_000 {
            let forged: Vec<&str> = (0..random.random_range(0..40))
                .map(|_| pieces[random.random_range(0..pieces.len())])
                .collect();
            let forged = forged.join(if random.random() { "," } else { ", " });
            // A proxy adds the peer it saw, to the same line or as another one; a second proxy follows.
            let lines = match random.random_range(0..3) {
                0 => vec![format!("{forged},203.0.113.9, 10.0.0.2")],
                1 => vec![forged, "203.0.113.9".to_owned(), "10.0.0.2".to_owned()],
                _ => vec![forged, "203.0.113.9,10.0.0.2".to_owned()],
            };
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert_eq!(
                proxies().client(address("10.0.0.1"), &forwarded_for(&lines)),
                address("203.0.113.9"),
                "{lines:?}"
            );
            let untrusted = address("198.51.100.1");
            assert_eq!(proxies().client(untrusted, &forwarded_for(&lines)), untrusted, "{lines:?}");
        }
    }

    #[test]
    fn at_most_sixteen_forwarded_entries_are_read() {
        let row = ["10.0.0.3"; 1000].join(",");
        let lines = format!("198.51.100.1,{row}");
        assert_eq!(proxies().client(address("10.0.0.1"), &forwarded_for(&[&lines])), address("10.0.0.3"));
    }

    #[test]
    fn all_addresses_of_an_ipv6_network_of_64_bits_count_as_one() {
        let of = |text: &str| Address::from(address(text));
        assert_eq!(of("::ffff:1.2.3.4"), of("1.2.3.4"));
        assert_ne!(of("1.2.3.4"), of("1.2.3.5"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:ffff:ffff:ffff"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("2001:db8::1").0 & u128::from(u64::MAX), 0);
        assert!(of("255.255.255.255").0 >> 64 == 0 && of("0.0.0.0") != of("::"));
        assert_eq!(
            (of("1.2.3.4").to_string(), of("2001:db8::1").to_string()),
            ("1.2.3.4".into(), "2001:db8::/64".into())
        );
    }

    #[test]
    fn malformed_networks_are_refused() {
        assert_eq!("".parse::<TrustedProxies>().unwrap(), TrustedProxies::default());
        assert!("0.0.0.0/0".parse::<TrustedProxies>().unwrap().contains(address("::ffff:1.2.3.4")));
        for wrong in
            ["10.0.0.0/33", "10.0.0", "x", "10.0.0.0/8;fd00::/8", "::ffff:10.0.0.0/104", "10.0.0.0/-1"]
        {
            assert!(wrong.parse::<TrustedProxies>().is_err(), "{wrong}");
        }
    }
}
