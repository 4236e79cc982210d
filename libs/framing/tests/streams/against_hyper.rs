//! Generated streams, read by framing and by hyper.

use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::{compare::compare, generate::stream, run};

#[test]
fn hyper_reads_accepted_streams_alike_and_refuses_refused_ones() {
    let (seed, streams) = run(60_000);
    for turn in 0..streams {
        let seed = seed.wrapping_add(turn);
        let mut dice = SmallRng::seed_from_u64(seed);
        let stream = stream(&mut dice);
        let pieces: Vec<u8> = (0..dice.random_range(0..8)).map(|_| dice.random_range(0..60)).collect();
        if let Err(difference) = compare(&stream, &pieces) {
            panic!("with MESH_TEST_SEED={seed}: {difference}\nof {}\nin {pieces:?}", stream.escape_ascii());
        }
    }
}
