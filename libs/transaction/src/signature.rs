//! Signatures of transactions (contract 5.4): what they cover, signing and verifying.

use std::fmt;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use proto_msgs::v2::{Signature, Transaction, TxVersion, transaction::From as Sender};
use sha3::{Digest, Sha3_256};

/// The name of the algorithm where a network has no name of its own for it.
pub const ALGORITHM: &str = "ed25519";

/// The only version of the algorithm.
const VERSION: u32 = 1;

/// Why a signature does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Neither V2 nor V3.
    #[error("version of the transaction is not supported")]
    TxVersion,
    /// No public key, or an address in its place.
    #[error("public key is missing")]
    NoKey,
    /// The public key cannot be one.
    #[error("public key is not valid")]
    Key,
    /// There is none.
    #[error("signature is missing")]
    Missing,
    /// The network has another algorithm or version.
    #[error("signature algorithm is not supported")]
    Algorithm,
    /// It was made with another key, or over something else.
    #[error("signature is not valid")]
    Wrong,
}

/// What is signed: SHA3-256 of chain id, a zero byte and the input data (V3), or of the input data alone
/// (V2). Nothing for another version.
#[must_use]
pub fn digest(version: TxVersion, chain_id: &str, input_data: &[u8]) -> Option<[u8; 32]> {
    let hasher = match version {
        TxVersion::V3 => Sha3_256::new().chain_update(chain_id).chain_update([0]),
        TxVersion::V2 => Sha3_256::new(),
        TxVersion::Unspecified => return None,
    };
    Some(hasher.chain_update(input_data).finalize().into())
}

/// Verifies the signature of a transaction. `algorithm`: the name that the network has for it.
///
/// # Errors
/// The reason why the signature does not count.
pub fn verify(tx: &Transaction, chain_id: &str, algorithm: &str) -> Result<(), SignatureError> {
    let version = TxVersion::try_from(tx.version).map_err(|_| SignatureError::TxVersion)?;
    let digest = digest(version, chain_id, &tx.input_data).ok_or(SignatureError::TxVersion)?;
    let Some(Sender::PubKey(key)) = &tx.from else { return Err(SignatureError::NoKey) };
    let signature = tx.signature.as_ref().ok_or(SignatureError::Missing)?;
    if signature.algo != algorithm || signature.version != VERSION {
        return Err(SignatureError::Algorithm);
    }
    let mut bytes = [0; 32];
    hex::decode_to_slice(key, &mut bytes).map_err(|_| SignatureError::Key)?;
    let key = VerifyingKey::from_bytes(&bytes).map_err(|_| SignatureError::Key)?;
    let mut value = [0; 64];
    hex::decode_to_slice(&signature.value, &mut value).map_err(|_| SignatureError::Wrong)?;
    // Strictly: with a weak key, any signature would be valid.
    key.verify_strict(&digest, &ed25519_dalek::Signature::from_bytes(&value))
        .map_err(|_| SignatureError::Wrong)
}

/// A private key.
#[derive(Clone)]
pub struct Key(SigningKey);

impl Key {
    /// The key of a seed of 32 random bytes.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// The public key, 64 lower-case hex digits.
    #[must_use]
    pub fn public(&self) -> String {
        hex::encode(self.0.verifying_key().as_bytes())
    }

    /// Signs input data; nothing for a version that is not V2 or V3.
    #[must_use]
    pub fn sign(
        &self,
        version: TxVersion,
        chain_id: &str,
        input_data: &[u8],
        algorithm: &str,
    ) -> Option<Signature> {
        let value = self.0.sign(&digest(version, chain_id, input_data)?);
        Some(Signature { value: hex::encode(value.to_bytes()), algo: algorithm.to_owned(), version: VERSION })
    }
}

impl fmt::Debug for Key {
    /// Without its secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.public()).finish()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn signed(version: TxVersion) -> Transaction {
        let key = Key::from_seed(&[7; 32]);
        Transaction {
            input_data: Bytes::from_static(b"order"),
            signature: key.sign(version, "net-1", b"order", ALGORITHM),
            version: version.into(),
            from: Some(Sender::PubKey(key.public())),
            pow: None,
        }
    }

    #[test]
    fn the_key_and_the_digest_are_those_of_others() {
        // RFC 8032, 7.1, test 1.
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let mut bytes = [0; 32];
        hex::decode_to_slice(seed, &mut bytes).unwrap();
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(Key::from_seed(&bytes).public(), public);
        // FIPS 202: SHA3-256 of nothing.
        let empty = "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a";
        assert_eq!(digest(TxVersion::V2, "net-1", b"").map(hex::encode).as_deref(), Some(empty));
        let bound: [u8; 32] = Sha3_256::digest(b"net-1\0order").into();
        assert_eq!(digest(TxVersion::V3, "net-1", b"order"), Some(bound));
        assert_eq!(digest(TxVersion::Unspecified, "", b""), None);
    }

    #[test]
    fn a_signature_counts_for_its_data_and_in_version_3_for_its_chain() {
        for version in [TxVersion::V2, TxVersion::V3] {
            assert_eq!(verify(&signed(version), "net-1", ALGORITHM), Ok(()));
            let mut other = signed(version);
            other.input_data = Bytes::from_static(b"orders");
            assert_eq!(verify(&other, "net-1", ALGORITHM), Err(SignatureError::Wrong));
        }
        assert_eq!(verify(&signed(TxVersion::V2), "net-2", ALGORITHM), Ok(()));
        assert_eq!(verify(&signed(TxVersion::V3), "net-2", ALGORITHM), Err(SignatureError::Wrong));
    }

    #[test]
    fn every_part_of_a_signature_is_looked_at() {
        let with = |change: fn(&mut Transaction)| {
            let mut tx = signed(TxVersion::V3);
            change(&mut tx);
            verify(&tx, "net-1", ALGORITHM)
        };
        assert_eq!(with(|tx| tx.version = 0), Err(SignatureError::TxVersion));
        assert_eq!(with(|tx| tx.version = 1), Err(SignatureError::TxVersion));
        assert_eq!(with(|tx| tx.version = 2), Err(SignatureError::Wrong));
        assert_eq!(with(|tx| tx.from = None), Err(SignatureError::NoKey));
        assert_eq!(with(|tx| tx.from = Some(Sender::Address("a".into()))), Err(SignatureError::NoKey));
        assert_eq!(with(|tx| tx.from = Some(Sender::PubKey("xy".into()))), Err(SignatureError::Key));
        // The neutral element: anything would be signed by it.
        let weak = |tx: &mut Transaction| tx.from = Some(Sender::PubKey(format!("01{}", "00".repeat(31))));
        assert_eq!(with(weak), Err(SignatureError::Wrong));
        assert_eq!(with(|tx| tx.signature = None), Err(SignatureError::Missing));
        let signature = |change: fn(&mut Signature)| {
            let mut tx = signed(TxVersion::V3);
            tx.signature.as_mut().map(change);
            verify(&tx, "net-1", ALGORITHM)
        };
        assert_eq!(signature(|signature| signature.algo = "rsa".into()), Err(SignatureError::Algorithm));
        assert_eq!(signature(|signature| signature.version = 2), Err(SignatureError::Algorithm));
        assert_eq!(signature(|signature| signature.value = "00".repeat(64)), Err(SignatureError::Wrong));
        assert_eq!(signature(|signature| signature.value.push('0')), Err(SignatureError::Wrong));
        assert_eq!(signature(|signature| signature.value.make_ascii_uppercase()), Ok(()));
    }

    #[test]
    fn a_key_does_not_show_its_secret() {
        let shown = format!("{:?}", Key::from_seed(&[7; 32]));
        assert!(!shown.contains("0707") && !shown.contains("7, 7"), "{shown}");
    }
}
