//! The watchers: they read slowly, lose their streams and reconnect, and check every event.

use rand::Rng as _;

use super::{Read, Seen, World, answer_of};
use crate::{
    ask::heads::HeadStatus,
    watch::state::{Next, Progress},
};

pub(super) struct Client {
    pub(super) progress: Option<Progress>,
    /// The first read of a stream.
    pub(super) opening: Option<Read>,
    /// When it reads bytes again.
    pub(super) ready_ms: u64,
    /// The last state received on any stream.
    pub(super) received: Option<Seen>,
    /// The last height received.
    pub(super) last_id: Option<u64>,
    /// Whether that was before the store was reset.
    pub(super) has_old_id: bool,
    pub(super) comes_back_ms: u64,
}

impl World {
    pub(super) fn client_reads(&mut self, index: usize) {
        let now_ms = self.now_ms;
        if self.clients[index].progress.is_none() && now_ms >= self.clients[index].comes_back_ms {
            self.client_begins(index);
        }
        while now_ms >= self.clients[index].ready_ms {
            let (head, latest, client) = (self.head, &self.latest, &mut self.clients[index]);
            let Some(progress) = &mut client.progress else { return };
            let held_before = progress.held_at.is_some();
            let next = progress.next(latest, head);
            let shown = progress.height(latest, head);
            assert!(shown <= head.height, "a sign of life shows {shown} and the head is {head:?}");
            if matches!(next, Next::End) {
                assert!(head.resets > 0, "the store was never reset");
                return self.stream_ends(index);
            }
            let Next::Send(emission, _) = next else { return };
            if !emission.event.is_problem() {
                let seen = seen_in(&emission.bytes(None).concat());
                assert!(Some(emission.height) >= client.last_id, "heights never fall");
                assert!(
                    Some(seen.content) >= client.received.map(|seen| seen.content),
                    "a state is never older"
                );
                // A delayed event is sent at the next look, even if blocks come faster than looks.
                let is_fresh = emission.height >= self.shown.height || held_before;
                assert!(is_fresh, "{seen:?} is sent after a plain read has shown {:?}", self.shown);
                (client.received, client.last_id) = (Some(seen), Some(emission.height));
                self.events += 1;
            }
            self.client_waits(index);
        }
    }

    /// A client starts with a plain read, or reconnects with its last id.
    fn client_begins(&mut self, index: usize) {
        let Some(read) = &self.clients[index].opening else {
            self.clients[index].opening = Some(self.shared_read());
            return;
        };
        if self.now_ms < read.ends_ms {
            return;
        }
        let read = self.clients[index].opening.take().unwrap();
        let Some(seen) = self.plain_read_ends(&read) else {
            self.clients[index].comes_back_ms = self.now_ms + 1000;
            return;
        };
        let now = self.at(self.now_ms);
        let answer = answer_of(&self.template, seen, self.at(read.began_ms));
        let is_of_before = read.head.resets != self.head.resets;
        let head = HeadStatus { resets: read.head.resets, ..self.head };
        let client = &mut self.clients[index];
        // An id from before the reset that the store has reached again is indistinguishable from a new one.
        let last_id = client.last_id.filter(|last_id| !client.has_old_id || *last_id > head.height);
        let (progress, first) =
            Progress::begin(&self.latest, &self.question, &answer, seen.height, head, last_id, now);
        client.progress = Some(progress);
        let is_above = last_id.is_some_and(|last_id| last_id > head.height);
        assert!(!is_above || first.is_some(), "an id above the head counts as none");
        if let Some(first) = first {
            assert!(is_above || Some(first.height) > last_id, "no state is sent twice");
            (client.received, client.last_id) = (Some(seen), Some(first.height));
            client.has_old_id = is_of_before;
        }
        self.client_waits(index);
    }

    /// A stream that ends because of a reset sends an empty id; not every client clears its last id then.
    fn stream_ends(&mut self, index: usize) {
        let keeps_id = self.rng.random_bool(0.5);
        let client = &mut self.clients[index];
        (client.progress, client.comes_back_ms) = (None, self.now_ms + 1000);
        client.last_id = client.last_id.filter(|_| keeps_id);
    }

    /// After an event most clients continue to read; some are slow, and some lose their stream.
    fn client_waits(&mut self, index: usize) {
        let (slow, lost) = (self.rng.random_range(1..8000), self.rng.random_range(1000..3000));
        let fate = if self.is_busy() { self.rng.random_range(0..10) } else { 0 };
        let client = &mut self.clients[index];
        client.ready_ms = self.now_ms + if fate == 8 { slow } else { 1 };
        if fate == 9 {
            client.progress = None;
            client.comes_back_ms = self.now_ms + lost;
        }
    }
}

/// The state in an event.
fn seen_in(text: &[u8]) -> Seen {
    let text = std::str::from_utf8(text).unwrap();
    let number = |name: &str| {
        let (_, rest) = text.split_once(name).unwrap_or(("", "0\n"));
        rest.lines().next().unwrap().parse().unwrap()
    };
    let mut data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    Seen { height: number("id: "), content: data.next().map_or(0, |data| data.parse().unwrap()) }
}
