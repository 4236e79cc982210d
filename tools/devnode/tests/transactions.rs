//! Rules and transactions of all tests.

use bytes::Bytes;
use mesh_transaction::{ALGORITHM, Key, Network, Puzzle, SearchControl, SpamRules, search};
use proto_msgs::v2::{ProofOfWork, Transaction, TxVersion, transaction::From as Sender};

pub(crate) const CHAIN: &str = "net-1";

pub(crate) fn network() -> Network {
    Network { chain_id: CHAIN.into(), algorithm: ALGORITHM.into(), pow_prefix: String::new() }
}

/// Rules with little proof of work, a short window and a quota that no test reaches by accident.
pub(crate) fn rules() -> SpamRules {
    SpamRules { difficulty: 3, past_blocks: 5, tx_per_block: 1000, ..SpamRules::default() }
}

/// A proof of work of these bits on a block. Its `tid` is `tid of <party> <input>`.
pub(crate) fn work(bits: u32, block_hash: &str, party: u8, input: &str) -> ProofOfWork {
    let tid = format!("tid of {party} {input}");
    let puzzle = Puzzle::new("", block_hash, &tid);
    ProofOfWork { nonce: search(&puzzle, bits, &SearchControl::default()).unwrap(), tid }
}

/// A signed transaction of a party.
pub(crate) fn signed(party: u8, input: &str, pow: Option<ProofOfWork>) -> Transaction {
    let key = Key::from_seed(&[party; 32]);
    let input_data = Bytes::from(input.to_owned());
    Transaction {
        signature: key.sign(TxVersion::V3, CHAIN, &input_data, ALGORITHM),
        input_data,
        version: TxVersion::V3.into(),
        from: Some(Sender::PubKey(key.public())),
        pow,
    }
}
