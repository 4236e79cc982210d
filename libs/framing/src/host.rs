//! Hosts: `uri-host [ ":" port ]`, of a `Host` field and of the authority of an http URI (RFC 9110, 7.2; RFC
//! 3986, 3.2.2 and 3.2.3). Parsed byte by byte, since it may be received in pieces.

use std::net::Ipv6Addr;

/// Longest text of an IPv6 address.
const MAX_IPV6: usize = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255".len();

/// Whether a text is a host, with or without a port. An empty one is not, nor is one with user information.
pub fn is_host(text: &[u8]) -> bool {
    let mut host = Host::default();
    text.iter().all(|byte| host.take(*byte)) && host.may_end()
}

/// The parser of a host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    part: Part,
    /// The IPv6 address so far.
    ipv6: [u8; MAX_IPV6],
    length: usize,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Start,
    /// A registered name; an IPv4 address looks like one.
    Name,
    /// A percent escape, with the number of missing hexadecimal digits.
    Escape(u8),
    /// After the opening bracket.
    Literal,
    Ipv6,
    /// `IPvFuture`: `v`, its version (whether there is a digit), `.`, its text (whether there is a byte).
    FutureVersion(bool),
    FutureText(bool),
    /// After the closing bracket.
    Closed,
    Port(u16),
}

impl Default for Host {
    fn default() -> Self {
        Self { part: Part::Start, ipv6: [0; MAX_IPV6], length: 0 }
    }
}

impl Host {
    /// Takes a byte; `false` when it is not allowed here.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let next = match (self.part, byte) {
            (Part::Start, b'[') => Part::Literal,
            (Part::Name | Part::Closed, b':') => Part::Port(0),
            (Part::Start | Part::Name, b'%') => Part::Escape(2),
            (Part::Start | Part::Name, _) if is_in_names(byte) => Part::Name,
            (Part::Escape(2), _) if byte.is_ascii_hexdigit() => Part::Escape(1),
            (Part::Escape(1), _) if byte.is_ascii_hexdigit() => Part::Name,
            (Part::Literal, b'v' | b'V') => Part::FutureVersion(false),
            (Part::Literal | Part::Ipv6, b':' | b'.') if self.push_ipv6(byte) => Part::Ipv6,
            (Part::Literal | Part::Ipv6, _) if byte.is_ascii_hexdigit() && self.push_ipv6(byte) => Part::Ipv6,
            (Part::Ipv6, b']') if self.is_ipv6() => Part::Closed,
            (Part::FutureVersion(_), _) if byte.is_ascii_hexdigit() => Part::FutureVersion(true),
            (Part::FutureVersion(true), b'.') => Part::FutureText(false),
            (Part::FutureText(true), b']') => Part::Closed,
            (Part::FutureText(_), _) if byte == b':' || is_in_names(byte) => Part::FutureText(true),
            (Part::Port(port), b'0'..=b'9') => {
                let port = port.checked_mul(10).and_then(|port| port.checked_add(u16::from(byte - b'0')));
                match port {
                    Some(port) => Part::Port(port),
                    None => return false,
                }
            }
            _ => return false,
        };
        self.part = next;
        true
    }

    /// Whether the host may end here.
    pub(crate) fn may_end(&self) -> bool {
        matches!(self.part, Part::Name | Part::Closed | Part::Port(_))
    }

    /// Stores a byte of an IPv6 address; `false` when there are too many.
    fn push_ipv6(&mut self, byte: u8) -> bool {
        let target = self.ipv6.get_mut(self.length);
        let has_room = target.is_some();
        if let Some(target) = target {
            *target = byte;
            self.length += 1;
        }
        has_room
    }

    /// Whether the stored bytes are an IPv6 address.
    fn is_ipv6(&self) -> bool {
        str::from_utf8(&self.ipv6[..self.length]).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
    }
}

/// Whether a byte needs no escape in a registered name: `unreserved` and `sub-delims`.
fn is_in_names(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}
