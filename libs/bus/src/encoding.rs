//! The encoding of a reply: the service renders it in the requested form, so that the edge passes the bytes
//! on unchanged and rendering scales with the service.

use std::{io::Write, str::FromStr};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use mesh_problem::Problem;
use siphasher::sip128::SipHasher13;

/// Replies longer than this are compressed when the asker accepts gzip (contract J15).
pub(crate) const GZIP_FROM_BYTES: usize = 1024;

/// Form of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// Compact JSON by the contract's rules.
    Json,
    /// The same, indented.
    PrettyJson,
    /// Protobuf.
    #[default]
    Protobuf,
}

/// Form of a reply and whether it may be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Encoding {
    /// Form.
    pub format: Format,
    /// Whether the asker accepts gzip.
    pub gzip: bool,
}

impl Encoding {
    /// The header value, e.g. `json+gzip`.
    pub(crate) fn as_str(self) -> &'static str {
        match (self.format, self.gzip) {
            (Format::Json, false) => "json",
            (Format::Json, true) => "json+gzip",
            (Format::PrettyJson, false) => "json-pretty",
            (Format::PrettyJson, true) => "json-pretty+gzip",
            (Format::Protobuf, false) => "protobuf",
            (Format::Protobuf, true) => "protobuf+gzip",
        }
    }

    /// Writes a reply, still uncompressed.
    ///
    /// # Errors
    /// When the reply cannot be written.
    pub fn render<R: prost::Message + serde::Serialize>(self, reply: &R) -> Result<Vec<u8>, Problem> {
        let failed = |error: serde_json::Error| {
            Problem::internal(mesh_problem::NOT_MAPPED, "the reply could not be written")
                .caused_by(error.to_string())
        };
        match self.format {
            Format::Json => {
                // Names and quotes take less than the values of most replies: their text seldom outgrows this.
                let mut body = Vec::with_capacity(2 * reply.encoded_len());
                serde_json::to_writer(&mut body, reply).map_err(failed)?;
                Ok(body)
            }
            Format::PrettyJson => serde_json::to_vec_pretty(reply).map_err(failed),
            Format::Protobuf => Ok(reply.encode_to_vec()),
        }
    }

    /// A digest of the content of a reply, the same for all JSON forms and from every replica. `body`: the
    /// reply in this encoding.
    pub(crate) fn digest<R: serde::Serialize>(self, reply: &R, body: &[u8]) -> Option<u128> {
        match self.format {
            Format::Json => Some(hash(body)),
            Format::PrettyJson => serde_json::to_vec(reply).ok().map(|compact| hash(&compact)),
            Format::Protobuf => None,
        }
    }
}

/// SipHash-1-3 with a fixed key: 128 bits, so that two contents never share one by chance, at some 5 GB/s.
fn hash(content: &[u8]) -> u128 {
    SipHasher13::new().hash(content).as_u128()
}

impl FromStr for Encoding {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (format, gzip) = match text.strip_suffix("+gzip") {
            Some(format) => (format, true),
            None => (text, false),
        };
        let format = match format {
            "json" => Format::Json,
            "json-pretty" => Format::PrettyJson,
            "protobuf" => Format::Protobuf,
            _ => return Err(()),
        };
        Ok(Self { format, gzip })
    }
}

/// The level of gzip for answers. Level 1 of this library compresses text with much hex badly: its output is a
/// third longer, in two thirds of the time; level 5 would save another tenth for a third more.
pub const GZIP_LEVEL: u32 = 2;

/// Compresses by gzip.
pub fn gzip(plain: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 2), Compression::new(GZIP_LEVEL));
    encoder.write_all(plain).expect("writing into memory does not fail");
    encoder.finish().expect("writing into memory does not fail").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replicas of two builds, and of two kinds of machine, give one content one tag.
    #[test]
    fn the_digest_of_a_content_never_changes_and_is_one_for_both_forms_of_json() {
        let digest = |format, reply: &[u32]| {
            let encoding = Encoding { format, gzip: true };
            let body = serde_json::to_vec(reply).unwrap();
            encoding.digest(&reply, if format == Format::Json { &body } else { b"indented" })
        };
        let expected = Some(0x5cc5_64f5_47bc_837e_18eb_64e4_bc25_c681);
        assert_eq!(digest(Format::Json, &[1, 2]), expected);
        assert_eq!(digest(Format::PrettyJson, &[1, 2]), expected);
        assert_ne!(digest(Format::Json, &[1, 3]), expected);
        assert_eq!(digest(Format::Protobuf, &[1, 2]), None);
    }

    #[test]
    fn every_encoding_reads_back_from_its_header() {
        for format in [Format::Json, Format::PrettyJson, Format::Protobuf] {
            for gzip in [false, true] {
                let encoding = Encoding { format, gzip };
                assert_eq!(encoding.as_str().parse(), Ok(encoding));
            }
        }
        assert_eq!("xml".parse::<Encoding>(), Err(()));
    }
}
