//! A single case of the state machine; the simulator of the laboratory has the others.

use super::*;

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
