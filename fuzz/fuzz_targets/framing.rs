//! What the edge's guard lets through, hyper must read as the guard does; what it refuses, hyper must refuse
//! in its place. The comparison is that of the tests of `mesh-framing`; now and then a whole new stream is
//! made as there.

#![no_main]

#[path = "../../libs/framing/tests/streams/compare.rs"]
mod compare;
#[path = "../../libs/framing/tests/streams/generate.rs"]
mod generate;
#[path = "../../libs/framing/tests/streams/record.rs"]
mod record;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// How much of an input says into which pieces the rest is cut.
const PIECES: usize = 4;

fuzz_target!(|input: &[u8]| {
    let Some((pieces, stream)) = input.split_at_checked(PIECES) else { return };
    if let Err(difference) = compare::compare(stream, pieces) {
        panic!("{difference}\nof {}\nin {pieces:?}", stream.escape_ascii());
    }
});

// One of sixteen inputs is begun anew from the grammar, one of four is changed where requests have their
// sense; the rest is libFuzzer's own, with its dictionary.
fuzz_mutator!(|input: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut dice = SmallRng::seed_from_u64(u64::from(seed));
    match dice.random_range(0..16) {
        0 => {
            let mut made = [0; PIECES].map(|_| dice.random_range(0..60)).to_vec();
            made.extend(generate::stream(&mut dice));
            write(input, &made, max_size)
        }
        1..5 if size > PIECES => {
            let mut stream = input[PIECES..size].to_vec();
            generate::mutate(&mut dice, &mut stream);
            let mut changed = input[..PIECES].to_vec();
            changed.extend(stream);
            write(input, &changed, max_size)
        }
        _ => fuzzer_mutate(input, size, max_size),
    }
});

fn write(input: &mut [u8], bytes: &[u8], max_size: usize) -> usize {
    let size = bytes.len().min(max_size).min(input.len());
    input[..size].copy_from_slice(&bytes[..size]);
    size
}
