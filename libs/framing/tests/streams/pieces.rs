//! The result of framing does not depend on how a stream is cut into pieces.

use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::{generate::stream, record::read, run};

#[test]
fn any_cutting_into_pieces_gives_the_same_requests_and_the_same_verdict_at_the_same_byte() {
    let (seed, streams) = run(100_000);
    for turn in 0..streams {
        let seed = seed.wrapping_add(turn);
        let mut dice = SmallRng::seed_from_u64(seed);
        let stream = stream(&mut dice);
        let (whole, _) = read([stream.as_slice()]);
        let (bytes, _) = read(stream.chunks(1));
        assert_eq!(bytes, whole, "byte by byte, with MESH_TEST_SEED={seed}: {}", stream.escape_ascii());
        let mut pieces = Vec::new();
        let mut rest = stream.as_slice();
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(dice.random_range(0..=rest.len().min(30)));
            pieces.push(piece);
            rest = later;
        }
        let (cut, _) = read(pieces.iter().copied());
        assert_eq!(cut, whole, "in {pieces:?}, with MESH_TEST_SEED={seed}");
    }
}

#[test]
fn what_is_refused_stays_refused() {
    let mut framing = mesh_framing::Framing::default();
    let first = framing.feed(b"GET / HTTP/1.1\n", &mut ()).unwrap_err();
    let later = framing.feed(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &mut ()).unwrap_err();
    assert_eq!((first.clear, later.clear, first.reason), (14, 0, later.reason));
}
