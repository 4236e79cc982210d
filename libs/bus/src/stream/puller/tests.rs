//! The puller's rules, one by one.

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

fn asked(puller: &mut Puller, now: Duration) -> Asked {
    match puller.next(now, FAR) {
        Action::Pull(asked) => asked,
        other => panic!("{other:?}"),
    }
}

fn chunk(asked: &Asked, index: u32) -> Event {
    let long = asked.budget.chunk_bytes() as u64;
    let begin = u64::from_be_bytes(asked.position.as_bytes().try_into().unwrap());
    let at = begin + long * u64::from(index);
    let then = (1..=3).map(|pulls| position(begin + u64::from(asked.budget.bytes) * pulls)).collect();
    let bytes = vec![0; long as usize].into();
    let (position, after) = (position(at), position(at + long));
    Event::Chunk(asked.pull, Chunk { stream: 1, index, position, after, then, mark: Mark::More, bytes })
}

/// As a reader who takes everything at once sees it after a while.
fn grown() -> (Puller, Asked, Duration) {
    let limits = PullLimits { unproven_bytes: 1 << 20, growth: 1, ..PullLimits::default() };
    let (mut puller, mut now, mut delivered) = (puller(limits), ms(0), 0);
    loop {
        now += ms(1);
        match puller.next(now, FAR) {
            Action::Pull(asked)
                if asked.budget.chunks == 2 && asked.budget.chunk_bytes() == MAX_CHUNK_BYTES =>
            {
                return (puller, asked, now);
            }
            Action::Pull(asked) => {
                assert!(
                    delivered >= 1 << 20 || asked.budget.bytes == 64 << 10,
                    "nobody knows the reader yet"
                );
                // The reader waits for it.
                while let Action::Deliver(_) = puller.next(now, 0) {}
                delivered += u64::from(asked.budget.bytes);
                (0..asked.budget.chunks).for_each(|index| puller.on(chunk(&asked, index), now));
            }
            Action::Deliver(_) | Action::Wait(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_stream_begins_with_one_small_chunk_and_grows_to_its_window() {
    let mut puller = puller(PullLimits::default());
    let first = asked(&mut puller, ms(0)).budget;
    assert_eq!(first, PullBudget { chunks: 1, bytes: 64 << 10 });
    assert!(matches!(puller.next(ms(0), FAR), Action::Wait(until) if until == PATIENCE_AT_LEAST));
    let (mut puller, last, now) = grown();
    while let Action::Pull(_) | Action::Deliver(_) = puller.next(now, FAR) {}
    assert!(puller.held() + puller.outstanding() <= 4 << 20);
    assert_eq!(last.budget.bytes, 1 << 20);
}

#[test]
fn the_next_stretches_are_asked_for_while_this_one_comes() {
    let (mut puller, first, now) = grown();
    while let Action::Deliver(_) = puller.next(now, FAR) {}
    puller.on(chunk(&first, 0), now);
    let begin = u64::from_be_bytes(first.position.as_bytes().try_into().unwrap());
    for stretch in 1..4 {
        assert_eq!(asked(&mut puller, now).position, position(begin + (stretch << 20)));
    }
    assert!(matches!(puller.next(now, FAR), Action::Deliver(_)));
}

#[test]
fn where_shorter_stretches_begin_is_not_known_from_longer_ones() {
    let (mut puller, first, now) = grown();
    while let Action::Deliver(_) = puller.next(now, FAR) {}
    puller.on(chunk(&first, 0), now);
    asked(&mut puller, now);
    puller.window /= 2;
    assert!(matches!(puller.next(now, FAR), Action::Deliver(_)));
    let shorter = asked(&mut puller, now);
    assert!(shorter.budget.bytes < 1 << 20, "{shorter:?}");
    puller.on(chunk(&first, 1), now);
    while let Action::Deliver(_) = puller.next(now, 0) {}
    assert!(!matches!(puller.next(now, FAR), Action::Pull(_)), "nobody has said where");
}

#[test]
fn a_gap_is_pulled_again_at_once() {
    let (mut puller, first, now) = grown();
    while let Action::Deliver(_) = puller.next(now, FAR) {}
    puller.on(chunk(&first, 1), now);
    assert!(matches!(puller.next(now, FAR), Action::Cancel(pull) if pull == first.pull));
    let again = asked(&mut puller, now);
    assert_eq!((again.position, again.budget, again.is_again), (first.position, first.budget, true));
}

#[test]
fn silence_is_gone_around_and_ends_in_a_break() {
    let mut puller = puller(PullLimits::default());
    asked(&mut puller, ms(0));
    assert!(matches!(puller.next(ms(149), FAR), Action::Wait(_)));
    assert!(asked(&mut puller, ms(150)).is_again);
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
fn failures_are_followed_up_at_once_and_then_with_pauses() {
    let mut puller = puller(PullLimits::default());
    let mut now = ms(0);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        let asked_at = now;
        let asked = loop {
            match puller.next(now, FAR) {
                Action::Pull(asked) => break asked,
                Action::Wait(until) => now = until,
                other => panic!("{other:?}"),
            }
        };
        pauses.push(now - asked_at);
        puller.on(Event::Failed(asked.pull, Problem::unavailable("busy")), now);
    }
    assert_eq!(pauses[..2], [ms(0), ms(0)]);
    assert!(pauses[2] >= ms(5) && pauses[2] <= ms(10), "{pauses:?}");
    assert!(pauses[11] >= ms(250) && pauses[11] <= ms(500), "{pauses:?}");
}

#[test]
fn a_reader_that_stays_away_gets_a_smaller_window() {
    let (mut puller, first, now) = grown();
    (0..4).for_each(|index| puller.on(chunk(&first, index), now));
    let before = puller.window;
    while !matches!(puller.next(now, 0), Action::Deliver(_)) {}
    puller.next(now + SLOW, 0);
    assert_eq!(puller.window, before / 2);
}

#[test]
fn when_others_have_the_room_little_is_asked_for() {
    let (mut puller, first, now) = grown();
    (0..4).for_each(|index| puller.on(chunk(&first, index), now));
    let mut pulled = Vec::new();
    loop {
        match puller.next(now, 0) {
            Action::Pull(asked) => pulled.push(asked.budget),
            Action::Deliver(_) => {}
            _ => break,
        }
    }
    assert_eq!(pulled, [PullBudget { chunks: 1, bytes: 64 << 10 }]);
}
