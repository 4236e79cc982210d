//! The bytes that the simulated replicas stream, and the random numbers of a seed.

use std::sync::LazyLock;

use bytes::Bytes;
use mesh_bus::Position;

/// The id of the simulated stream.
pub(crate) const STREAM: u64 = 0x5eed;

/// Random numbers from a seed (SplitMix64).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`; 0 when that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True with a probability of `in_a_thousand` / 1000.
    pub(crate) fn chance(&mut self, in_a_thousand: u32) -> bool {
        in_a_thousand > 0 && self.below(1000) < u64::from(in_a_thousand)
    }
}

/// Mixes the bits of a number (the last step of SplitMix64).
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The streamed bytes: a part of a fixed pseudorandom text.
pub(crate) struct Source {
    begins: usize,
    pub(crate) length: u64,
    /// Whether replicas know where a pull will end before they have read it, as for files; otherwise as for
    /// rows.
    pub(crate) is_arithmetic: bool,
    pub(crate) rows: Option<u64>,
}

/// Maximum length of a source, bytes.
pub(crate) const LONGEST: u64 = 8 << 10;

pub(crate) static NOISE: LazyLock<Bytes> = LazyLock::new(|| {
    let mut rng = Rng::new(1);
    (0..LONGEST as usize / 4).flat_map(|_| rng.next().to_le_bytes()).collect()
});

impl Source {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let most = [1, 64, 600, 2_500, LONGEST][rng.below(5) as usize];
        let (length, begins) = (rng.below(most + 1), rng.below(LONGEST) as usize);
        let is_arithmetic = rng.chance(500);
        Self { begins, length, is_arithmetic, rows: (!is_arithmetic).then_some(length / 7) }
    }

    pub(crate) fn bytes(&self, from: u64, to: u64) -> Bytes {
        NOISE.slice(self.begins + from as usize..self.begins + to as usize)
    }

    pub(crate) fn position(&self, offset: u64) -> Position {
        let mut bytes = (self.begins as u64 ^ self.length << 32).to_le_bytes().to_vec();
        bytes.extend(offset.to_le_bytes());
        Position::new(bytes).expect("16 bytes")
    }

    pub(crate) fn offset(&self, position: &Position) -> Option<u64> {
        let offset = u64::from_le_bytes(position.as_bytes().get(8..)?.try_into().ok()?);
        (*position == self.position(offset) && offset <= self.length).then_some(offset)
    }
}
