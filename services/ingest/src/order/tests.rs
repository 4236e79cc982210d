//! Single cases of the state machine; the simulator of the laboratory has the others.

use std::collections::VecDeque;

use super::*;

fn stored_up_to(height: u64) -> Event {
    Event::Store(Some("c".to_owned()), Some(Head { height, hash: height.to_string() }))
}

/// A block that follows the one below it.
fn fetched(height: u64, ticket: Ticket) -> Event {
    let (hash, parent) = (height.to_string(), (height - 1).to_string());
    Event::Fetched(height, ticket, Link { chain_id: "c".to_owned(), hash, parent, bytes: 1 })
}

/// The order over a node at height `latest`.
fn order(fetch_ahead: usize, latest: u64) -> Order {
    let mut order = Order::new(Settings { fetch_ahead, held_bytes: 1 << 20, from: None, after_hash: None });
    order.on(Event::Node("c".to_owned(), 1, latest), Duration::ZERO);
    order
}

/// What follows an action that nothing hinders.
fn done(action: &Action, head: &mut u64) -> Event {
    match *action {
        Action::ReadStore => stored_up_to(*head),
        Action::Fetch(height, ticket) => fetched(height, ticket),
        Action::Decode(height, ticket) => Event::Decoded(height, ticket, 1),
        Action::Store(_, to) => {
            *head = to;
            Event::Stored(to, Duration::ZERO)
        }
    }
}

/// The reply of a decoder that cannot decode a block.
fn undecodable(height: u64, ticket: Ticket) -> Event {
    Event::NotDecoded(height, ticket, NotDecoded::Never(Reason::Decode, "unknown event".to_owned()))
}

/// As after a state sync, or when one of several nodes behind an address is late.
#[test]
fn a_node_without_a_block_that_its_status_names_is_reported() {
    let settings = Settings { fetch_ahead: 4, held_bytes: 1 << 20, from: None, after_hash: None };
    let mut order = Order::new(settings);
    let head = Head { height: 11, hash: "11".to_owned() };
    let mut at = |second, latest| {
        let now = Duration::from_secs(second);
        order.on(Event::Node("c".to_owned(), 1, latest), now);
        while let Some(action) = order.next(now) {
            let event = match action {
                Action::ReadStore => Event::Store(Some("c".to_owned()), Some(head.clone())),
                Action::Fetch(height, ticket) => Event::NotFetched(height, ticket, NotFetched::TooHigh),
                other => panic!("{other:?}"),
            };
            order.on(event, now);
        }
        order.check()
    };
    let text = "the node says that it is at block 20, and has no block 12";
    let told: Vec<u64> = (0..20).filter(|second| at(*second, 20) == Err(text.to_owned())).collect();
    assert!((5..9).contains(&told[0]) && told.len() as u64 == 20 - told[0], "{told:?}");
    assert_eq!((at(21, 11), at(22, 12)), (Ok(()), Ok(())), "a later status is believed");
}

/// The decoder that cannot decode a block has decoded the later ones, perhaps wrongly.
#[test]
fn blocks_above_a_halted_one_are_decoded_again() {
    let mut order = order(4, 15);
    let (mut decoded, mut head) = (Vec::new(), 11);
    for second in 0..20 {
        let now = Duration::from_secs(second);
        while let Some(action) = order.next(now) {
            let event = match action {
                Action::Decode(12, ticket) if second < 10 => undecodable(12, ticket),
                Action::Decode(height, ticket) => {
                    decoded.push((height, second >= 10));
                    Event::Decoded(height, ticket, 1)
                }
                action => done(&action, &mut head),
            };
            order.on(event, now);
        }
    }
    let again: Vec<u64> =
        decoded.iter().filter(|(_, is_corrected)| *is_corrected).map(|(height, _)| *height).collect();
    assert_eq!((again, head), (vec![12, 13, 14, 15], 15));
}

/// An operator has corrected the decoder, which hangs now.
#[test]
fn a_halt_says_what_keeps_its_block_from_being_tried_again() {
    let (mut order, mut head) = (order(4, 12), 11);
    for second in 0..20 {
        let now = Duration::from_secs(second);
        while let Some(action) = order.next(now) {
            let event = match action {
                Action::Decode(12, ticket) if second < 10 => undecodable(12, ticket),
                Action::Decode(12, ticket) => {
                    Event::NotDecoded(12, ticket, NotDecoded::Unavailable("no decoder".to_owned()))
                }
                action => done(&action, &mut head),
            };
            order.on(event, now);
        }
    }
    let why = "halted at block 12: decode: unknown event; tried again: no decoder";
    assert_eq!(order.check(), Err(why.to_owned()));
}

/// A database that has become slow, and then refuses a transaction once.
#[test]
fn a_transaction_that_took_too_long_is_smaller_the_next_time_and_one_that_was_refused_is_stored_one_by_one() {
    let mut order = order(8, 16);
    let fewest = TransactionRows::FEWEST.most();
    for rows in [fewest, 2 * fewest] {
        order.rows.took(rows, Duration::ZERO);
    }
    let (mut stored, mut head) = (Vec::new(), 1);
    for second in 0..20 {
        let now = Duration::from_secs(second);
        while let Some(action) = order.next(now) {
            let event = match action {
                Action::Decode(height, ticket) => Event::Decoded(height, ticket, fewest),
                Action::Store(from, to) => {
                    stored.push((from, to));
                    match stored.len() {
                        // Several are decoded meanwhile.
                        1 => Event::NotStored(NotStored::Busy),
                        2 => Event::NotStored(NotStored::Unavailable("no reply within 30 s".to_owned())),
                        3 => Event::NotStored(NotStored::Refused("deadlock".to_owned())),
                        _ => done(&Action::Store(from, to), &mut head),
                    }
                }
                action => done(&action, &mut head),
            };
            order.on(event, now);
        }
    }
    let (first, then) = stored.split_at(5);
    assert_eq!(first, [(2, 2), (2, 5), (2, 3), (2, 2), (3, 3)]);
    assert!(then[0].1 > then[0].0 && head == 16, "{then:?}");
}

/// A decoder that takes 0.45 s for a block, one after the other, also for those whose time is over.
#[test]
fn a_slow_decoder_and_a_slow_node_are_asked_for_no_more_than_they_answer_in_time() {
    const TAKES_MS: u64 = 450;
    const PATIENCE_MS: u64 = 5000;
    let mut order = order(16, 200);
    let (mut queue, mut head, mut is_first) = (VecDeque::new(), 1, true);
    for now_ms in 0..60_000_u64 {
        let now = Duration::from_millis(now_ms);
        if now_ms % TAKES_MS == 0
            && let Some((height, ticket, sent_ms)) = queue.pop_front()
            && now_ms < sent_ms + PATIENCE_MS
        {
            order.on(Event::Decoded(height, ticket, 1), now);
        }
        for (height, ticket, _) in queue.iter().filter(|(.., sent_ms)| now_ms == sent_ms + PATIENCE_MS) {
            let error = NotDecoded::Late("no reply in time".to_owned());
            order.on(Event::NotDecoded(*height, *ticket, error), now);
        }
        let mut fetches = 0;
        while let Some(action) = order.next(now) {
            let event = match action {
                Action::Fetch(height, ticket) => {
                    fetches += 1;
                    fetched(height, ticket)
                }
                Action::Decode(height, ticket) => {
                    queue.push_back((height, ticket, now_ms));
                    continue;
                }
                action => done(&action, &mut head),
            };
            assert!(fetches < 2 || !is_first, "how large blocks are is not known");
            order.on(event, now);
            is_first &= fetches == 0;
        }
    }
    assert!(head > 100, "{head} of 134 blocks that it can decode in a minute");
}

/// One of two decoders hangs. The next block is not behind those that wait for the same one.
#[test]
fn a_block_that_a_decoder_does_not_reply_to_is_asked_for_again_at_once() {
    let mut order = order(16, 200);
    let (mut head, mut asked) = (1, VecDeque::new());
    let mut run = |order: &mut Order, now, hangs_from: u64| {
        while let Some(action) = order.next(now) {
            let event = match action {
                Action::Decode(height, ticket) if height >= hangs_from => {
                    asked.push_back((height, ticket));
                    continue;
                }
                action => done(&action, &mut head),
            };
            order.on(event, now);
        }
        std::mem::take(&mut asked)
    };
    run(&mut order, Duration::ZERO, 60);
    let waiting = run(&mut order, PATIENCE, 60);
    assert!(waiting.len() > 8 && waiting[0].0 == 60, "{waiting:?}");
    let now = PATIENCE + Duration::from_secs(5);
    let late = NotDecoded::Late("no reply in time".to_owned());
    order.on(Event::NotDecoded(60, waiting[0].1, late), now);
    let again = run(&mut order, now, 60);
    assert!(again.len() == 1 && again[0].0 == 60, "{again:?}");
}
