//! The proof of work of one transaction (contract 5.5): a hash over block, `tid` and nonce that begins with
//! zeros.

use sha3::{Digest, Sha3_256};

/// As many zero bits as a hash can have.
pub const MAX_BITS: u32 = 256;

/// Everything of the preimage but the nonce.
#[derive(Clone, Debug)]
pub struct Puzzle {
    hasher: Sha3_256,
}

impl Puzzle {
    /// The work for a `tid` on a block with this hash, 64 lower-case hex digits; the prefix is that of the
    /// network.
    #[must_use]
    pub fn new(prefix: &str, block_hash: &str, tid: &str) -> Self {
        Self { hasher: Sha3_256::new().chain_update(prefix).chain_update(block_hash).chain_update(tid) }
    }

    /// Number of zero bits of a nonce, 0 to 256: the greatest difficulty that it satisfies.
    #[must_use]
    pub fn bits(&self, nonce: u64) -> u32 {
        let hash: [u8; 32] = self.hasher.clone().chain_update(nonce.to_be_bytes()).finalize().into();
        leading_zero_bits(&hash)
    }
}

/// Counts the zero bits before the first one, 0 to 256: more than a byte can tell.
fn leading_zero_bits(hash: &[u8; 32]) -> u32 {
    match hash.iter().zip(0..).find(|(byte, _)| **byte != 0) {
        Some((byte, at)) => at * 8 + byte.leading_zeros(),
        None => MAX_BITS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_from_none_to_all() {
        for bits in 0..MAX_BITS as usize {
            let mut hash = [0_u8; 32];
            hash[bits / 8] = 0x80 >> (bits % 8);
            assert_eq!(leading_zero_bits(&hash), bits as u32);
            // What follows the first one does not count.
            hash[31] |= 1;
            assert_eq!(leading_zero_bits(&hash), bits as u32);
        }
        assert_eq!(leading_zero_bits(&[0; 32]), 256);
    }

    #[test]
    fn the_preimage_is_prefix_block_tid_and_the_nonce_most_significant_byte_first() {
        let block = "ab".repeat(32);
        for nonce in [0, 1, 258, u64::MAX] {
            let preimage = [b"Net_", block.as_bytes(), b"tid-1", &nonce.to_be_bytes()[..]].concat();
            let hash: [u8; 32] = Sha3_256::digest(preimage).into();
            assert_eq!(Puzzle::new("Net_", &block, "tid-1").bits(nonce), leading_zero_bits(&hash));
        }
    }
}
