//! The one encoding of a transaction (contract 5.1) and its hash, which identifies it.

use std::{fmt, str::FromStr};

use bytes::Bytes;
use prost::Message;
use proto_msgs::v2::Transaction;
use sha2::{Digest, Sha256};

/// SHA-256 of an encoded transaction; written as 64 upper-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TxHash([u8; 32]);

/// The bytes are not what [`encode`] makes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(&'static str);

/// The text is not 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a transaction hash is 64 hex digits")]
pub struct ParseHashError;

/// Encodes: fields in ascending number, defaults left out, a message that is there written even when it is
/// empty.
#[must_use]
pub fn encode(tx: &Transaction) -> Vec<u8> {
    tx.encode_to_vec()
}

/// Decodes a transaction.
///
/// # Errors
/// When the bytes are not exactly those of [`encode`]: otherwise one transaction could be sent with several
/// hashes.
pub fn decode(encoded: &Bytes) -> Result<Transaction, DecodeError> {
    let tx =
        Transaction::decode(encoded.clone()).map_err(|_| DecodeError("transaction could not be decoded"))?;
    match tx.encoded_len() == encoded.len() && encode(&tx) == *encoded {
        true => Ok(tx),
        false => Err(DecodeError("transaction is not in its one encoding")),
    }
}

impl TxHash {
    /// The hash of an encoded transaction, or of other bytes submitted as one.
    #[must_use]
    pub fn of(encoded: &[u8]) -> Self {
        Self(Sha256::digest(encoded).into())
    }

    /// The 32 bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for TxHash {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for TxHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode_upper(self.0))
    }
}

impl fmt::Debug for TxHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TxHash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, ParseHashError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| ParseHashError)?;
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use proto_msgs::v2::{ProofOfWork, Signature, TxVersion, transaction::From as Sender};
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    use super::*;

    fn whole() -> Transaction {
        Transaction {
            input_data: Bytes::from_static(b"hi"),
            signature: Some(Signature { value: "ab".into(), algo: "ed".into(), version: 1 }),
            version: TxVersion::V3.into(),
            pow: Some(ProofOfWork { tid: "t".into(), nonce: 300 }),
            from: Some(Sender::PubKey("cd".into())),
        }
    }

    #[test]
    fn fields_are_written_in_ascending_number_and_defaults_left_out() {
        // By hand from the wire format: tags are number * 8 + wire type, as varints.
        let expected =
            "0a02686912 0a 0a026162 12026564 1801 d23e026364 807d03 c2bb0106 0a0174 10ac02".replace(' ', "");
        assert_eq!(hex::encode(encode(&whole())), expected);
        assert_eq!(
            TxHash::of(&encode(&whole())).to_string(),
            hex::encode_upper(Sha256::digest(hex::decode(expected).unwrap()))
        );
        // What is there and empty is written, what is absent is not.
        let empty = Transaction {
            signature: Some(Signature::default()),
            pow: Some(ProofOfWork::default()),
            from: Some(Sender::Address(String::new())),
            ..Transaction::default()
        };
        assert_eq!(hex::encode(encode(&empty)), "1200ca3e00c2bb0100");
        assert!(encode(&Transaction::default()).is_empty());
    }

    #[test]
    fn what_is_encoded_is_read_back_and_nothing_else() {
        let encoded = Bytes::from(encode(&whole()));
        assert_eq!(decode(&encoded).unwrap(), whole());
        // An unknown field, a field twice, a default written out, another order: all protobuf, none of them
        // ours.
        for (before, after) in [("", "9a3e0178"), ("", "0a026869"), ("", "807d03"), ("807d03", "")] {
            let other =
                [hex::decode(before).unwrap(), encoded.to_vec(), hex::decode(after).unwrap()].concat();
            assert!(Transaction::decode(&*other).is_ok());
            decode(&Bytes::from(other)).unwrap_err();
        }
        decode(&Bytes::from_static(b"\x0a\x05hi")).unwrap_err();
        decode(&Bytes::from_static(b"no transaction")).unwrap_err();
    }

    #[test]
    fn any_bytes_that_are_read_are_those_that_are_written() {
        let mut rng = SmallRng::seed_from_u64(1);
        let good = encode(&whole());
        let mut read = 0;
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..rng.random_range(0..3) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
            bytes.truncate(rng.random_range(0..=bytes.len() * 2).min(bytes.len()));
            let bytes = Bytes::from(bytes);
            if let Ok(tx) = decode(&bytes) {
                assert_eq!(encode(&tx), bytes);
                read += 1;
            }
        }
        assert!(read > 1000, "{read}");
    }

    #[test]
    fn a_hash_is_written_in_upper_case_and_read_in_any() {
        let hash = TxHash::of(b"");
        let text = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855";
        assert_eq!(hash.to_string(), text);
        assert_eq!(text.to_lowercase().parse(), Ok(hash));
        for wrong in ["", "E3", &text[1..], &format!("{text}00"), &text.replace('E', "G")] {
            assert_eq!(wrong.parse::<TxHash>(), Err(ParseHashError), "{wrong}");
        }
    }
}
