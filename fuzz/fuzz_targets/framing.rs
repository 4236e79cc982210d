//! Framing and hyper must read accepted bytes in the same way; where framing refuses a byte, hyper must
//! refuse the bytes that replace the rest. The comparison and the generator of streams are those of the tests
//! of `mesh-framing`.

#![no_main]

#[path = "../../libs/framing/tests/streams/compare.rs"]
mod compare;
#[path = "../../libs/framing/tests/streams/generate.rs"]
mod generate;
#[path = "../../libs/framing/tests/streams/record.rs"]
mod record;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Number of leading bytes of an input that are the lengths of the pieces of the rest.
const PIECES: usize = 4;

fuzz_target!(|input: &[u8]| {
    let Some((pieces, stream)) = input.split_at_checked(PIECES) else { return };
    if let Err(difference) = compare::compare(stream, pieces) {
        panic!("{difference}\nof {}\nin {pieces:?}", stream.escape_ascii());
    }
});

// One of sixteen inputs is newly generated, one of four is changed by the generator's mutation; the others
// are mutated by libFuzzer with its dictionary.
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
