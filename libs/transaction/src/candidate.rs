//! A transaction as a node receives it: decoded, and its signature verified, before the chain is asked
//! anything.

use bytes::Bytes;
use prost::Message;
use proto_msgs::v2::{Transaction, transaction::From as Sender};

use crate::{
    encoding::{TxHash, decode},
    refusal::Refusal,
    signature::verify,
};

/// What is particular to one network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The chain id, which signatures of version 3 cover.
    pub chain_id: String,
    /// The name of the signature algorithm, [`ALGORITHM`](crate::ALGORITHM) unless it has its own.
    pub algorithm: String,
    /// What the preimage of the proof of work begins with; may be empty.
    pub pow_prefix: String,
}

/// A transaction with a valid signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its hash.
    pub hash: TxHash,
    /// Who signed it: the public key in lower case.
    pub party: String,
    /// Its proof of work, not verified yet.
    pub proof: Option<Proof>,
}

/// A proof of work, as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The identifier that the work was done for.
    pub tid: String,
    /// The nonce found.
    pub nonce: u64,
}

impl Candidate {
    /// Decodes bytes and verifies the signature.
    ///
    /// # Errors
    /// The refusal of the network: bytes that are no transaction, no input data, or a signature that does not
    /// count.
    pub fn read(encoded: &Bytes, network: &Network) -> Result<Self, Refusal> {
        let tx = decode(encoded).map_err(|error| Refusal::undecodable(error.to_string()))?;
        if tx.input_data.is_empty() {
            return Err(Refusal::invalid("input data is empty"));
        }
        verify(&tx, &network.chain_id, &network.algorithm)
            .map_err(|error| Refusal::invalid(error.to_string()))?;
        Ok(Self::of(TxHash::of(encoded), tx))
    }

    /// Decodes bytes in any protobuf encoding of a transaction, without verifying anything.
    ///
    /// # Errors
    /// When the bytes are no transaction.
    pub fn trusted(encoded: &Bytes) -> Result<Self, Refusal> {
        let tx = Transaction::decode(encoded.clone())
            .map_err(|_| Refusal::undecodable("transaction could not be decoded"))?;
        Ok(Self::of(TxHash::of(encoded), tx))
    }

    fn of(hash: TxHash, tx: Transaction) -> Self {
        let party = match tx.from {
            Some(Sender::PubKey(key)) => key.to_ascii_lowercase(),
            _ => String::new(),
        };
        let proof = tx.pow.map(|pow| Proof { tid: pow.tid, nonce: pow.nonce });
        Self { hash, party, proof }
    }
}

#[cfg(test)]
mod tests {
    use proto_msgs::v2::{ProofOfWork, TxVersion};

    use super::*;
    use crate::{
        encoding::encode,
        refusal::{UNDECODABLE, VALIDATION_FAILED},
        signature::{ALGORITHM, Key},
    };

    fn network() -> Network {
        Network { chain_id: "net-1".into(), algorithm: ALGORITHM.into(), pow_prefix: String::new() }
    }

    fn signed(input_data: &'static [u8]) -> Transaction {
        let key = Key::from_seed(&[1; 32]);
        Transaction {
            input_data: Bytes::from_static(input_data),
            signature: key.sign(TxVersion::V3, "net-1", input_data, ALGORITHM),
            version: TxVersion::V3.into(),
            from: Some(Sender::PubKey(key.public().to_ascii_uppercase())),
            pow: Some(ProofOfWork { tid: "Tid".into(), nonce: 9 }),
        }
    }

    fn code_of(tx: &Transaction) -> u32 {
        Candidate::read(&encode(tx).into(), &network()).unwrap_err().code
    }

    #[test]
    fn a_signed_transaction_becomes_a_candidate() {
        let encoded = Bytes::from(encode(&signed(b"order")));
        let candidate = Candidate::read(&encoded, &network()).unwrap();
        let expected = Candidate {
            hash: TxHash::of(&encoded),
            party: Key::from_seed(&[1; 32]).public(),
            proof: Some(Proof { tid: "Tid".into(), nonce: 9 }),
        };
        assert_eq!(candidate, expected);
        assert_eq!(Candidate::trusted(&encoded), Ok(expected));
    }

    #[test]
    fn what_is_wrong_decides_the_code() {
        let unsigned = Transaction { signature: None, ..signed(b"order") };
        assert_eq!(code_of(&unsigned), VALIDATION_FAILED);
        assert!(Candidate::trusted(&encode(&unsigned).into()).is_ok());
        // An unknown field.
        let other = Bytes::from([encode(&signed(b"order")), vec![0x9a, 0x3e, 1, 0x78]].concat());
        assert_eq!(Candidate::read(&other, &network()).unwrap_err().code, UNDECODABLE);
        assert!(Candidate::trusted(&other).is_ok());
        assert_eq!(code_of(&signed(b"")), VALIDATION_FAILED);
        assert_eq!(code_of(&Transaction::default()), VALIDATION_FAILED);
        let refused = Candidate::read(&Bytes::from_static(b"text"), &network()).unwrap_err();
        assert_eq!(refused.code, UNDECODABLE);
        assert_eq!(Candidate::trusted(&Bytes::from_static(b"text")), Err(refused));
    }
}
