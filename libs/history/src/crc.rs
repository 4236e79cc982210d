//! Checksums of joined pieces from the checksums of the pieces, without reading them again.

/// A reflected 32-bit CRC polynomial with its powers x^(8·2^k).
pub(crate) struct Crc {
    polynomial: u32,
    powers: [u32; 64],
}

/// The checksum of ZIP members.
pub(crate) const CRC32: Crc = Crc::new(0xEDB8_8320);
/// The checksum of stored bytes.
pub(crate) const CRC32C: Crc = Crc::new(0x82F6_3B78);

impl Crc {
    const fn new(polynomial: u32) -> Crc {
        let mut crc = Crc { polynomial, powers: [0; 64] };
        let mut power = 0x0080_0000; // x^8: one zero byte
        let mut k = 0;
        while k < 64 {
            crc.powers[k] = power;
            power = crc.multiply(power, power);
            k += 1;
        }
        crc
    }

    /// The product of two remainders.
    const fn multiply(&self, a: u32, mut b: u32) -> u32 {
        let mut product = 0;
        let mut bit = 32;
        while bit > 0 {
            bit -= 1;
            product ^= b & ((a >> bit) & 1).wrapping_neg();
            b = (b >> 1) ^ ((b & 1).wrapping_neg() & self.polynomial);
        }
        product
    }

    /// The checksum of two pieces laid end to end; `length` is the second one's, in bytes.
    pub(crate) fn join(&self, first: u32, second: u32, length: u64) -> u32 {
        let mut shifted = first;
        let mut rest = length;
        while rest != 0 {
            shifted = self.multiply(self.powers[rest.trailing_zeros() as usize], shifted);
            rest &= rest - 1;
        }
        shifted ^ second
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    use super::*;

    /// `crc32fast` ignores the second checksum if its length is 0; lengths here are at least 1.
    #[test]
    fn checksums_are_joined_as_by_another_implementation() {
        let mut rng = SmallRng::seed_from_u64(2);
        for _ in 0..300 {
            let (a, b): (u32, u32) = (rng.random(), rng.random());
            let length = (rng.random::<u64>() >> rng.random_range(8..64_u32)).max(1);
            let mut first = crc32fast::Hasher::new_with_initial_len(a, 7);
            first.combine(&crc32fast::Hasher::new_with_initial_len(b, length));
            assert_eq!(CRC32.join(a, b, length), first.finalize());
            assert_eq!(CRC32C.join(a, b, length), crc32c::crc32c_combine(a, b, length as usize));
        }
    }
}
