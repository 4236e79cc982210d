//! For whom a request is: `uri-host [ ":" port ]`, which a `Host` field and the authority of an http URI are made of
//! (RFC 9110, 7.2; RFC 3986, 3.2.2 and 3.2.3). Byte by byte, since it may come in pieces.

use std::net::Ipv6Addr;

/// Longest text of an IPv6 address.
const SIX_AT_MOST: usize = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255".len();

/// Whether a text is a host, with or without a port. An empty one is not, nor is one with user information.
pub fn is_host(text: &[u8]) -> bool {
    let mut host = Host::default();
    text.iter().all(|byte| host.take(*byte)) && host.may_end()
}

/// A host that is being read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    part: Part,
    /// The IPv6 address so far.
    six: [u8; SIX_AT_MOST],
    length: usize,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Start,
    /// A registered name; an IPv4 address looks like one.
    Name,
    /// The hexadecimal digits of a percent escape that are missing.
    Escape(u8),
    /// The first byte behind a bracket.
    Literal,
    Six,
    /// An address of a version to come: `v`, its number (whether a digit has come), `.`, its text.
    FutureVersion(bool),
    FutureText(bool),
    /// Behind the closing bracket.
    Closed,
    Port(u16),
}

impl Default for Host {
    fn default() -> Self {
        Self { part: Part::Start, six: [0; SIX_AT_MOST], length: 0 }
    }
}

impl Host {
    /// Takes a byte, or says that it cannot stand here.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let next = match (self.part, byte) {
            (Part::Start, b'[') => Part::Literal,
            (Part::Name | Part::Closed, b':') => Part::Port(0),
            (Part::Start | Part::Name, b'%') => Part::Escape(2),
            (Part::Start | Part::Name, _) if is_in_names(byte) => Part::Name,
            (Part::Escape(2), _) if byte.is_ascii_hexdigit() => Part::Escape(1),
            (Part::Escape(1), _) if byte.is_ascii_hexdigit() => Part::Name,
            (Part::Literal, b'v' | b'V') => Part::FutureVersion(false),
            (Part::Literal | Part::Six, b':' | b'.') if self.keep(byte) => Part::Six,
            (Part::Literal | Part::Six, _) if byte.is_ascii_hexdigit() && self.keep(byte) => Part::Six,
            (Part::Six, b']') if self.is_six() => Part::Closed,
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

    /// Whether it may end here.
    pub(crate) fn may_end(&self) -> bool {
        matches!(self.part, Part::Name | Part::Closed | Part::Port(_))
    }

    /// Keeps a byte of an IPv6 address while there is room for one.
    fn keep(&mut self, byte: u8) -> bool {
        let place = self.six.get_mut(self.length);
        let has_room = place.is_some();
        if let Some(place) = place {
            *place = byte;
            self.length += 1;
        }
        has_room
    }

    /// Whether what was kept is an IPv6 address.
    fn is_six(&self) -> bool {
        str::from_utf8(&self.six[..self.length]).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
    }
}

/// Whether a byte stands in a registered name as it is: `unreserved` and `sub-delims`.
fn is_in_names(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}
