//! The last received announcement of a topic.

use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use mesh_bus::{Announcement, Bus};

/// The last received announcement and its time. Cloning shares it.
#[derive(Clone)]
pub struct Latest<N> {
    last: Rc<Cell<Option<(N, Instant)>>>,
}

impl<N: Announcement + Copy> Latest<N> {
    /// Subscribes to the topic. Must be called inside an actix system.
    pub fn subscribe(bus: &Bus) -> Self {
        let last = Rc::new(Cell::new(None));
        let (bus, heard) = (bus.clone(), Rc::clone(&last));
        actix::spawn(async move {
            match bus.subscribe::<N>().await {
                Ok(mut news) => {
                    while let Some(news) = news.next().await {
                        heard.set(Some((news, Instant::now())));
                    }
                }
                Err(error) => tracing::error!(%error, topic = N::TOPIC, "cannot subscribe to announcements"),
            }
        });
        Self { last }
    }

    /// The last announcement, if it was received within this time.
    pub fn within(&self, age: Duration) -> Option<N> {
        self.last.get().filter(|(_, heard)| heard.elapsed() <= age).map(|(news, _)| news)
    }
}
