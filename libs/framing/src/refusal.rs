//! Why a connection is refused.

use std::fmt;

/// The end of the unambiguous bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Unambiguous bytes of the piece.
    pub clear: usize,
    /// What is wrong with the next one.
    pub reason: Ambiguity,
}

/// What two parsers may understand differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ambiguity {
    /// A line feed without a carriage return.
    BareLf,
    /// A carriage return without a line feed.
    BareCr,
    /// A zero byte.
    Nul,
    /// A request line that does not end with HTTP/1.0 or HTTP/1.1.
    Version,
    /// A target with a fragment, which some servers cut off and others take for a part of the path.
    Fragment,
    /// A line that continues the field before it, or the first one with white space in front.
    Folding,
    /// A field name with white space or another byte that no name has, or none.
    Name,
    /// No `Host`, where one is required.
    NoHost,
    /// A second `Host`.
    Hosts,
    /// A `Host` that is neither empty nor a host with or without a port.
    Host,
    /// A `Content-Length` that is not one plain number.
    Length,
    /// A second `Content-Length`.
    Lengths,
    /// A `Transfer-Encoding` other than `chunked`.
    Coding,
    /// A second `Transfer-Encoding`, or one in HTTP/1.0.
    Codings,
    /// `Content-Length` and `Transfer-Encoding` together.
    LengthAndCoding,
    /// A chunk whose size is no hexadecimal number, or too great a one.
    ChunkSize,
    /// A chunk that is longer than its size.
    ChunkEnd,
    /// A framing field in the trailer.
    Trailer,
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::BareLf => "a bare line feed",
            Self::BareCr => "a bare carriage return",
            Self::Nul => "a zero byte",
            Self::Version => "no HTTP/1 request line",
            Self::Fragment => "a fragment in the target",
            Self::Folding => "a folded field",
            Self::Name => "an invalid header name",
            Self::NoHost => "no host",
            Self::Hosts => "several hosts",
            Self::Host => "an invalid host",
            Self::Length => "an invalid content length",
            Self::Lengths => "several content lengths",
            Self::Coding => "an unsupported transfer encoding",
            Self::Codings => "several transfer encodings, or one in HTTP/1.0",
            Self::LengthAndCoding => "both content length and transfer encoding",
            Self::ChunkSize => "an invalid chunk size",
            Self::ChunkEnd => "an overlong chunk",
            Self::Trailer => "a framing header in the trailer",
        })
    }
}
