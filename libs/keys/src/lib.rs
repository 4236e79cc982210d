//! The file of the clients' keys (contract K1): one JSON object a line, which the edge follows and `mesh keys`
//! writes. Of a key it has the SHA-256 alone.

use std::{
    collections::HashSet,
    fmt,
    hash::{Hash, Hasher},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// How a generated key begins, so that scanners for secrets find it.
const PREFIX: &str = "mesh_";

/// Longest name of a key, characters.
pub const MAX_NAME: usize = 64;

/// Makes a key of 256 random bits: `mesh_` and 43 characters of base64url.
pub fn generate() -> String {
    let secret: [u8; 32] = rand::random();
    format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(secret))
}

/// The SHA-256 of a key. Compared in constant time.
#[derive(Debug, Clone, Copy)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// The digest of the key that a client sends.
    pub fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }

    /// Its first bytes, as a number for this key alone.
    pub fn number(&self) -> u64 {
        self.words().next().unwrap_or_default()
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        self.0.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
    }
}

impl PartialEq for KeyDigest {
    fn eq(&self, other: &Self) -> bool {
        let differing = self.words().zip(other.words()).fold(0, |bits, (one, other)| bits | (one ^ other));
        differing.ct_eq(&0).into()
    }
}

impl Eq for KeyDigest {}

impl Hash for KeyDigest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.number());
    }
}

impl Serialize for KeyDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for KeyDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut digest = [0; 32];
        hex::decode_to_slice(text, &mut digest).map_err(|_| de::Error::custom("not a SHA-256 in hex"))?;
        Ok(Self(digest))
    }
}

/// A line of the file. A limit that it does not name is the one of clients without a key; 0 = unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyEntry {
    /// The client's name in logs and usage records: 1 to [`MAX_NAME`] characters.
    pub name: String,
    /// The SHA-256 of the key, hex.
    pub sha256: KeyDigest,
    /// Requests a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<u32>,
    /// Requests at once; only beside `ratePerS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Downloads at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exports: Option<u32>,
    /// Watches at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watches: Option<u32>,
    /// When the key expires: RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "time")]
    pub expires: Option<Timestamp>,
}

impl KeyEntry {
    /// What makes an entry useless, if anything does.
    fn fault(&self) -> Option<String> {
        let length = self.name.chars().count();
        if length == 0 || length > MAX_NAME || self.name.chars().any(char::is_control) {
            return Some(format!("the name must have 1 to {MAX_NAME} characters"));
        }
        match (self.rate_per_s, self.burst) {
            (_, Some(0)) => Some("burst must be at least 1".to_owned()),
            (None | Some(0), Some(_)) => Some("burst needs ratePerS".to_owned()),
            _ => None,
        }
    }
}

/// RFC 3339.
mod time {
    use super::*;

    pub(super) fn serialize<S: Serializer>(time: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.collect_str(time),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Some).map_err(|_| de::Error::custom("not a time of RFC 3339"))
    }
}

/// Why a file is faulty. Its text never has a value of the file, because a key may be there by mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFault {
    /// The line, counted from 1.
    pub line: usize,
    reason: String,
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for FileFault {}

/// The entries of a file, whole or not at all. Empty lines and a byte order mark are skipped.
///
/// # Errors
/// The first faulty line: one that is no entry, or has the name or the key of an earlier one.
pub fn parse(file: &[u8]) -> Result<Vec<KeyEntry>, FileFault> {
    let (mut names, mut digests) = (HashSet::new(), HashSet::new());
    let mut entries = Vec::new();
    let file = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
    for (index, line) in file.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let fault = |reason: String| FileFault { line: index + 1, reason };
        let entry: KeyEntry = serde_json::from_slice(line).map_err(|error| fault(reason(&error)))?;
        if let Some(reason) = entry.fault() {
            return Err(fault(reason));
        }
        if !names.insert(entry.name.clone()) {
            return Err(fault("an earlier line has this name".to_owned()));
        }
        if !digests.insert(entry.sha256) {
            return Err(fault("an earlier line has this key".to_owned()));
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// The reason in an error of the parser, unless it quotes a value.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let quotes_no_value =
        ["missing field", "duplicate field", "not a "].iter().any(|start| text.starts_with(start));
    match quotes_no_value {
        true => text.split(" at line ").next().unwrap_or_default().to_owned(),
        false => format!("it is not a JSON object of a key's members, from column {} on", error.column()),
    }
}

/// The text of a file with these entries.
pub fn to_text(entries: &[KeyEntry]) -> String {
    entries.iter().filter_map(|entry| serde_json::to_string(entry).ok()).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA: &str = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

    fn fault(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_key_is_random_and_its_digest_is_its_sha256() {
        let (one, other) = (generate(), generate());
        assert_ne!(one, other);
        assert_eq!((one.len(), one.starts_with("mesh_")), (5 + 43, true));
        assert_eq!(serde_json::to_string(&KeyDigest::of(b"foo")).unwrap(), format!("\"{SHA}\""));
        assert_eq!(KeyDigest::of(one.as_bytes()), KeyDigest::of(one.as_bytes()));
        assert_ne!(KeyDigest::of(one.as_bytes()), KeyDigest::of(other.as_bytes()));
    }

    #[test]
    fn a_file_is_read_as_it_is_written() {
        let text = format!(
            "{{\"name\":\"bot\",\"sha256\":\"{SHA}\",\"ratePerS\":100,\"burst\":200,\"exports\":0,\"watches\":5,\
             \"expires\":\"2027-01-02T03:04:05Z\"}}\n"
        );
        let entries = parse(text.as_bytes()).unwrap();
        assert_eq!(to_text(&entries), text);
        assert_eq!(entries[0].sha256, KeyDigest::of(b"foo"));
        let least = format!("\u{feff}\n{{\"name\":\"b\",\"sha256\":\"{}\"}}\r\n\n", SHA.to_uppercase());
        let entries = parse(least.as_bytes()).unwrap();
        assert_eq!((entries.len(), entries[0].rate_per_s, entries[0].expires), (1, None, None));
    }

    #[test]
    fn a_faulty_line_is_named_and_no_value_is_quoted() {
        let line = |members: &str| format!("{{\"name\":\"a\",\"sha256\":\"{SHA}\"{members}}}\n");
        let good = line("");
        assert_eq!(fault(&format!("{good}{good}")), "line 2: an earlier line has this name");
        let twin = good.replace("\"a\"", "\"b\"");
        assert_eq!(fault(&format!("{good}\n{twin}")), "line 3: an earlier line has this key");
        assert_eq!(fault("{\"name\":\"a\"}"), "line 1: missing field `sha256`");
        assert_eq!(fault(&line(",\"burst\":5")), "line 1: burst needs ratePerS");
        assert_eq!(fault(&line(",\"expires\":\"secret\"")), "line 1: not a time of RFC 3339");
        for text in ["{\"name\":\"a\",\"sha256\":\"secret\"}", "secret", "{\"name\":5,\"sha256\":\"secret\"}"]
        {
            assert!(!fault(text).contains("secret"), "{}", fault(text));
        }
        for members in [",\"ratePerS\":\"secret\"", ",\"secret\":1", ",\"ratePerS\":-1", "}{"] {
            assert!(!fault(&line(members)).contains("secret"), "{}", fault(&line(members)));
        }
        let long = good.replace("\"a\"", &format!("\"{}\"", "ä".repeat(65)));
        assert_eq!(fault(&long), "line 1: the name must have 1 to 64 characters");
    }
}
