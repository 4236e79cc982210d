//! The framing of HTTP/1.1 responses: the ends of a head and of its body. Pure functions.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Maximum length of a response's head, bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Maximum number of a response's headers.
const MAX_HEADERS: usize = 64;

/// The head of a response, borrowed from the received bytes.
#[derive(Debug)]
pub struct Head<'a> {
    /// The status code.
    pub status: u16,
    /// Length of the head with its empty line, bytes.
    pub bytes: usize,
    headers: [httparse::Header<'a>; MAX_HEADERS],
}

impl<'a> Head<'a> {
    /// Parses a head; `None` as long as it is incomplete.
    ///
    /// # Errors
    /// When the bytes are not HTTP/1.1, or the head is too long.
    pub fn parse(received: &'a [u8]) -> Result<Option<Self>, String> {
        let malformed =
            |why: &str| format!("{why}: {:?}", String::from_utf8_lossy(&received[..received.len().min(200)]));
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(received).map_err(|error| malformed(&error.to_string()))?;
        match (parsed, response.version, response.code) {
            (httparse::Status::Complete(bytes), Some(1), Some(status)) => {
                Ok(Some(Self { status, bytes, headers }))
            }
            (httparse::Status::Complete(_), ..) => Err(malformed("another version of HTTP")),
            (httparse::Status::Partial, ..) if received.len() > MAX_HEAD_BYTES => {
                Err(malformed("an endless head"))
            }
            (httparse::Status::Partial, ..) => Ok(None),
        }
    }

    /// The value of a header, when it is present and text.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let found = self.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    }

    /// The headers.
    pub fn headers(&self) -> HeaderMap {
        let given = self.headers.iter().take_while(|header| !header.name.is_empty());
        let owned = |header: &httparse::Header<'_>| {
            let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_bytes(header.value).ok()?))
        };
        given.filter_map(owned).collect()
    }

    /// The length that the head declares for the body.
    ///
    /// # Errors
    /// When it is not a number.
    pub fn content_length(&self) -> Result<Option<u64>, String> {
        let Some(text) = self.header("content-length") else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("the length {text:?} is no number"))
    }

    /// How the body is delimited, unless the request was `HEAD`.
    ///
    /// # Errors
    /// When the declared length is not a number.
    pub fn body(&self) -> Result<Body, String> {
        if matches!(self.status, 100..200 | 204 | 304) {
            return Ok(Body::Length(0));
        }
        if self.header("transfer-encoding").is_some() {
            return Ok(Body::Chunked(Chunk::Size(0)));
        }
        Ok(self.content_length()?.map_or(Body::UntilClose, Body::Length))
    }
}

/// Where a body ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// After this many more bytes.
    Length(u64),
    /// After the last chunk.
    Chunked(Chunk),
    /// When the connection closes.
    UntilClose,
}

/// Position within a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// In the line of a chunk's size; holds the digits' value so far.
    Size(u64),
    /// In a chunk's bytes; holds how many remain.
    Bytes(u64),
    /// In the line break after a chunk.
    After,
    /// In the final line break; holds how many bytes remain.
    Last(u8),
}

impl Body {
    /// Whether the body is complete.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunk::Last(0)))
    }

    /// Decodes the next received bytes: leaves the body's bytes in `piece` and returns those that follow the
    /// body.
    ///
    /// # Errors
    /// When the chunks are malformed.
    pub fn decode(&mut self, piece: &mut Vec<u8>) -> Result<Vec<u8>, String> {
        let chunk = match self {
            Self::UntilClose => return Ok(Vec::new()),
            Self::Length(remaining) => {
                let length = (*remaining).min(piece.len() as u64);
                *remaining -= length;
                // The remainder is at most the length of the piece.
                return Ok(piece.split_off(length as usize));
            }
            Self::Chunked(chunk) => chunk,
        };
        let (mut read, mut written) = (0, 0);
        while let Some(&byte) = piece.get(read) {
            let malformed = || format!("the chunks are malformed at byte {byte:#x}");
            match *chunk {
                Chunk::Last(0) => break,
                Chunk::Bytes(remaining) => {
                    let length = remaining.min((piece.len() - read) as u64);
                    // The remainder is at most the length of the piece.
                    let taken = length as usize;
                    piece.copy_within(read..read + taken, written);
                    (read, written) = (read + taken, written + taken);
                    *chunk =
                        if length == remaining { Chunk::After } else { Chunk::Bytes(remaining - length) };
                    continue;
                }
                Chunk::Size(_) if byte == b'\r' => {}
                Chunk::Size(0) if byte == b'\n' => *chunk = Chunk::Last(2),
                Chunk::Size(size) if byte == b'\n' => *chunk = Chunk::Bytes(size),
                Chunk::Size(size) => {
                    let digit = char::from(byte).to_digit(16).ok_or_else(malformed)?;
                    let size = size.checked_mul(16).ok_or_else(malformed)?;
                    *chunk = Chunk::Size(size + u64::from(digit));
                }
                Chunk::After if byte == b'\n' => *chunk = Chunk::Size(0),
                Chunk::After if byte == b'\r' => {}
                Chunk::Last(remaining) if byte == b'\r' || byte == b'\n' => {
                    *chunk = Chunk::Last(remaining - 1);
                }
                Chunk::After | Chunk::Last(_) => return Err(malformed()),
            }
            read += 1;
        }
        let rest = piece.split_off(read);
        piece.truncate(written);
        Ok(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_when_it_is_complete() {
        let head = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nconnection: close\r\ncontent-length: 2\r\n\r\n";
        for cut in 0..head.len() {
            assert!(Head::parse(&head.as_bytes()[..cut]).unwrap().is_none(), "{cut}");
        }
        let received = format!("{head}ho");
        let read = Head::parse(received.as_bytes()).unwrap().unwrap();
        assert_eq!((read.status, read.bytes, read.body()), (503, head.len(), Ok(Body::Length(2))));
        assert_eq!((read.header("retry-after"), read.header("x")), (Some("1"), None));
        assert_eq!(read.headers()["content-length"], "2");
        for malformed in [&b"SSH-2.0\r\n\r\n"[..], b"HTTP/1.0 200 OK\r\n\r\n", &[b'a'; MAX_HEAD_BYTES + 1]] {
            Head::parse(malformed).unwrap_err();
        }
        let endless = [b"HTTP/1.1 200 OK\r\nx: ", &[b'a'; MAX_HEAD_BYTES][..]].concat();
        Head::parse(&endless).unwrap_err();
        let number = Head::parse(b"HTTP/1.1 200 OK\r\ncontent-length: 1a\r\n\r\n").unwrap().unwrap();
        number.body().unwrap_err();
    }

    /// Decodes a body in pieces of this length: the body, the bytes after it, and whether it is complete.
    fn decoded(mut body: Body, received: &[u8], length: usize) -> Result<(Vec<u8>, Vec<u8>, bool), String> {
        let (mut all, mut rest) = (Vec::new(), Vec::new());
        for piece in received.chunks(length) {
            let mut piece = piece.to_vec();
            rest.extend(body.decode(&mut piece)?);
            all.append(&mut piece);
        }
        Ok((all, rest, body.is_complete()))
    }

    #[test]
    fn a_body_ends_where_its_framing_says() {
        for length in [1, 3, 1000] {
            let chunked = |received| decoded(Body::Chunked(Chunk::Size(0)), received, length);
            let (bytes, next) = (b"bytes".to_vec(), b"HT".to_vec());
            assert_eq!(
                chunked(b"3\r\nbyt\r\n02\r\nes\r\n0\r\n\r\nHT"),
                Ok((bytes.clone(), next.clone(), true))
            );
            assert_eq!(decoded(Body::Length(5), b"bytesHT", length), Ok((bytes.clone(), next, true)));
            assert_eq!(chunked(b"5\r\nbytes\r\n0\r\n"), Ok((bytes.clone(), Vec::new(), false)));
            assert_eq!(decoded(Body::UntilClose, b"bytes", length), Ok((bytes, Vec::new(), false)));
            chunked(b"5\r\nbytes\r\nx").unwrap_err();
            chunked(b"5\r\nbytesx").unwrap_err();
        }
    }
}
