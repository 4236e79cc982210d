//! Unit tests of the puller.

use mesh_problem::Code;

use super::*;
use crate::stream::wire::Mark;

const FAR: u64 = u64::MAX;

fn position(offset: u64) -> Position {
    Position::new(offset.to_be_bytes().to_vec()).unwrap()
}

fn puller(limits: PullLimits) -> Puller {
    let first = position(0);
    let plan = Plan { stream: 1, first, from_byte: 0, to_byte: None, total_bytes: None, total_rows: None };
    Puller::new(plan, limits)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn pull(puller: &mut Puller, now: Duration) -> PullRequest {
    match puller.next(now, FAR) {
        Action::Pull(request) => request,
        other => panic!("{other:?}"),
    }
}

fn chunk(request: &PullRequest, index: u32) -> Event {
    let long = request.budget.chunk_bytes() as u64;
    let begin = u64::from_be_bytes(request.position.as_bytes().try_into().unwrap());
    let at = begin + long * u64::from(index);
    let next_positions =
        (1..=3).map(|pulls| position(begin + u64::from(request.budget.bytes) * pulls)).collect();
    let bytes = vec![0; long as usize].into();
    let (position, after) = (position(at), position(at + long));
    Event::Chunk(
        request.pull,
        Chunk { stream: 1, index, position, after, next_positions, mark: Mark::More, bytes },
    )
}

/// A puller with a grown window, after a reader that reads at once; its last pull, and the time.
fn grown() -> (Puller, PullRequest, Duration) {
    let limits = PullLimits { unproven_bytes: 1 << 20, growth: 1, ..PullLimits::default() };
    let (mut puller, mut now, mut delivered) = (puller(limits), ms(0), 0);
    loop {
        now += ms(1);
        match puller.next(now, FAR) {
            Action::Pull(request)
                if request.budget.chunks == 2 && request.budget.chunk_bytes() == MAX_CHUNK_BYTES =>
            {
                return (puller, request, now);
            }
            Action::Pull(request) => {
                assert!(
                    delivered >= 1 << 20 || request.budget.bytes == 64 << 10,
                    "the reader is not proven yet"
                );
                // The reader waits.
                while let Action::Deliver(_) = puller.next(now, 0) {}
                delivered += u64::from(request.budget.bytes);
                (0..request.budget.chunks).for_each(|index| puller.on(chunk(&request, index), now));
            }
            Action::Deliver(_) | Action::Wait(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_stream_begins_with_one_small_chunk_and_grows_to_its_window() {
    let mut puller = puller(PullLimits::default());
    let first = pull(&mut puller, ms(0)).budget;
    assert_eq!(first, PullBudget { chunks: 1, bytes: 64 << 10 });
    assert!(matches!(puller.next(ms(0), FAR), Action::Wait(until) if until == MIN_TIMEOUT));
    let (mut puller, last, now) = grown();
    while let Action::Pull(_) | Action::Deliver(_) = puller.next(now, FAR) {}
    assert!(puller.buffered() + puller.outstanding() <= 4 << 20);
    assert_eq!(last.budget.bytes, 1 << 20);
}

#[test]
fn the_next_ranges_are_pulled_while_this_one_arrives() {
    let (mut puller, first, now) = grown();
    while let Action::Deliver(_) = puller.next(now, FAR) {}
    puller.on(chunk(&first, 0), now);
    let begin = u64::from_be_bytes(first.position.as_bytes().try_into().unwrap());
    for range in 1..4 {
        assert_eq!(pull(&mut puller, now).position, position(begin + (range << 20)));
    }
    assert!(matches!(puller.next(now, FAR), Action::Deliver(_)));
}

#[test]
fn positions_announced_for_long_ranges_are_not_used_for_shorter_ones() {
    let (mut puller, first, now) = grown();
    while let Action::Deliver(_) = puller.next(now, FAR) {}
    puller.on(chunk(&first, 0), now);
    pull(&mut puller, now);
    puller.window /= 2;
    assert!(matches!(puller.next(now, FAR), Action::Deliver(_)));
    let shorter = pull(&mut puller, now);
    assert!(shorter.budget.bytes < 1 << 20, "{shorter:?}");
    puller.on(chunk(&first, 1), now);
    while let Action::Deliver(_) = puller.next(now, 0) {}
    assert!(!matches!(puller.next(now, FAR), Action::Pull(_)), "no chunk had the next position");
}

#[test]
fn a_gap_is_pulled_again_at_once() {
    let (mut puller, first, now) = grown();
    while let Action::Deliver(_) = puller.next(now, FAR) {}
    puller.on(chunk(&first, 1), now);
    assert!(matches!(puller.next(now, FAR), Action::Cancel(pull) if pull == first.pull));
    let again = pull(&mut puller, now);
    assert_eq!((again.position, again.budget, again.is_retry), (first.position, first.budget, true));
}

#[test]
fn a_silent_pull_is_repeated_and_the_stream_breaks_at_last() {
    let mut puller = puller(PullLimits::default());
    pull(&mut puller, ms(0));
    assert!(matches!(puller.next(ms(149), FAR), Action::Wait(_)));
    assert!(pull(&mut puller, ms(150)).is_retry);
    let (mut now, mut pulls) = (ms(150), 0);
    let problem = loop {
        match puller.next(now, FAR) {
            Action::Wait(until) => now = until,
            Action::Pull(_) => pulls += 1,
            Action::Cancel(_) => {}
            Action::Broken(problem) => break problem,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((problem.code, now), (Code::Unavailable, ms(30_000)));
    assert!((29..40).contains(&pulls), "{pulls}");
}

#[test]
fn a_replica_that_needs_longer_than_all_repetitions_is_waited_for() {
    let mut puller = puller(PullLimits::default());
    let (first, mut now) = (pull(&mut puller, ms(0)), ms(0));
    while now < ms(10_000) {
        match puller.next(now, FAR) {
            Action::Wait(until) => now = until,
            Action::Pull(_) => {}
            Action::Cancel(pull) => assert_ne!(pull, first.pull),
            other => panic!("{other:?}"),
        }
    }
    puller.on(chunk(&first, 0), now);
    while let Action::Cancel(_) = puller.next(now, 0) {}
    assert_eq!(puller.at_byte, u64::from(first.budget.bytes), "it is delivered");
}

#[test]
fn a_failed_pull_is_repeated_at_once_and_then_with_pauses() {
    let mut puller = puller(PullLimits::default());
    let mut now = ms(0);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        let before = now;
        let request = loop {
            match puller.next(now, FAR) {
                Action::Pull(request) => break request,
                Action::Wait(until) => now = until,
                other => panic!("{other:?}"),
            }
        };
        pauses.push(now - before);
        puller.on(Event::Failed(request.pull, Problem::unavailable("busy")), now);
    }
    assert_eq!(pauses[..2], [ms(0), ms(0)]);
    assert!(pauses[2] >= ms(5) && pauses[2] <= ms(10), "{pauses:?}");
    assert!(pauses[11] >= ms(250) && pauses[11] <= ms(500), "{pauses:?}");
}

#[test]
fn a_slow_reader_gets_a_smaller_window() {
    let (mut puller, first, now) = grown();
    (0..4).for_each(|index| puller.on(chunk(&first, index), now));
    let before = puller.window;
    while !matches!(puller.next(now, 0), Action::Deliver(_)) {}
    puller.next(now + SLOW_READER, 0);
    assert_eq!(puller.window, before / 2);
}

#[test]
fn a_stream_pulls_little_while_others_use_the_allowance() {
    let (mut puller, first, now) = grown();
    (0..4).for_each(|index| puller.on(chunk(&first, index), now));
    let mut pulled = Vec::new();
    loop {
        match puller.next(now, 0) {
            Action::Pull(request) => pulled.push(request.budget),
            Action::Deliver(_) => {}
            _ => break,
        }
    }
    assert_eq!(pulled, [PullBudget { chunks: 1, bytes: 64 << 10 }]);
}
