//! SHA-256, the hash of the history.

use std::fmt;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A SHA-256, shown as lower-case hex. A segment's id is that of its `metadata.json`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of these exact bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        let mut sha256 = Sha256::default();
        sha256.update(bytes);
        sha256.finish()
    }

    /// Reads 64 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Digest> {
        let mut bytes = [0; 32];
        let lower = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (lower && hex::decode_to_slice(text, &mut bytes).is_ok()).then_some(Digest(bytes))
    }
}

/// An incremental SHA-256. By `ring`, a dependency of TLS anyway, because all rows are hashed twice while
/// they are sealed, and it is faster than `sha2` on processors without SHA instructions.
pub(crate) struct Sha256(Context);

impl Default for Sha256 {
    fn default() -> Sha256 {
        Sha256(Context::new(&SHA256))
    }
}

impl Sha256 {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        let mut digest = [0; 32];
        digest.copy_from_slice(self.0.finish().as_ref());
        Digest(digest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        Digest::parse(&text).ok_or_else(|| D::Error::custom("not 64 lower-case hex digits"))
    }
}
