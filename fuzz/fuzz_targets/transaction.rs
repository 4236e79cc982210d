//! Decoding and checking transactions do not panic on any bytes. A decoded transaction encodes to the same
//! bytes. An admitted transaction is admitted only once.

#![no_main]

use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mesh_transaction::{Block, Candidate, Network, SpamFilter, SpamRules, TxHash, decode, encode};

fuzz_target!(|input: &[u8]| {
    let Some((&[difficulty, quota, increasing], bytes)) = input.split_first_chunk::<3>() else { return };
    let bytes = Bytes::copy_from_slice(bytes);
    if let Ok(tx) = decode(&bytes) {
        assert_eq!(encode(&tx), bytes);
    }
    let network = Network { chain_id: "net".into(), algorithm: "ed25519".into(), pow_prefix: "Net".into() };
    let read = Candidate::read(&bytes, &network);
    let trusted = Candidate::trusted(&bytes);
    if let Ok(candidate) = &read {
        assert_eq!(trusted.as_ref(), Ok(candidate));
    }
    let Ok(candidate) = trusted else { return };
    assert_eq!(candidate.hash, TxHash::of(&bytes));
    let rules = SpamRules {
        difficulty: u32::from(difficulty % 4),
        past_blocks: 5,
        tx_per_block: u32::from(quota),
        increasing: increasing % 2 == 1,
        bar: Duration::from_secs(30),
    };
    let mut spam = SpamFilter::new("Net");
    for height in 1..=7 {
        spam.begin(
            Block { height, hash: format!("{height:064x}"), time: Duration::from_secs(height) },
            rules,
        );
    }
    let judged = spam.check(&candidate);
    assert_eq!(spam.admit(&candidate), judged);
    if judged.is_ok() {
        spam.admit(&candidate).expect_err("it was admitted before");
        assert_eq!(spam.admission(&candidate.hash), judged);
    }
});
