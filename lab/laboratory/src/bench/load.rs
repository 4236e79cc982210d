//! The load of a round: clients on one thread, each with one request at a time. It shares the processors with the
//! measured servers and therefore does little work.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, TryStreamExt as _, future::join_all, stream};
use tokio::{
    sync::Notify,
    task::LocalSet,
    time::{sleep, sleep_until, timeout},
};

use super::{
    cost::{self, MeasuredProcess},
    meter::{LOAD, Meter, Round},
};
use crate::watches::OPENED_AT_ONCE;

/// How long the load runs before the measurement.
pub(super) const WARM_UP: Duration = Duration::from_millis(400);
/// Timeout of the last answers.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A client of a round.
pub(super) trait Client: 'static {
    /// Sends the next request and waits for its answer; `false`: there is no request left.
    async fn call(&mut self) -> Result<bool, String>;
}

/// How many clients send how often.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Number of clients, each with one request at a time.
    pub(super) clients: u64,
    /// Length of the measurement.
    pub(super) length: Duration,
    /// Time from one request of a client to its next one; `None` sends the next one after the answer.
    pub(super) period: Option<Duration>,
}

impl Pace {
    /// Clients that send the next request after the answer.
    pub(super) fn closed(clients: u64, length: Duration) -> Self {
        Self { clients, length, period: None }
    }

    /// Runs one round on the calling thread with clients that are connected by their numbers.
    ///
    /// # Errors
    /// When a client cannot connect or fails.
    pub(super) fn run<C: Client, F: Future<Output = Result<C, String>>>(
        self,
        watched: &[MeasuredProcess],
        connect: impl Fn(u64) -> F,
    ) -> Result<Round, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot start the load: {error}"))?;
        LocalSet::new().block_on(&runtime, async {
            let opening = stream::iter((0..self.clients).map(connect)).buffer_unordered(OPENED_AT_ONCE);
            let clients: Vec<C> = opening.try_collect().await?;
            let shared = Rc::<Shared>::default();
            let drive = |(number, client)| self.drive(client, number as f64, Rc::clone(&shared));
            let drivers: Vec<_> =
                clients.into_iter().enumerate().map(drive).map(tokio::task::spawn_local).collect();
            sleep(WARM_UP).await;
            let (meter, before_us) = (Meter::start(watched), cost::thread_us());
            shared.counts.set(true);
            // Ends early when no request is left or one has failed.
            let _ = timeout(self.length, shared.ended.notified()).await;
            shared.counts.set(false);
            let own_us = cost::thread_us() - before_us;
            let spent = meter.stop(own_us);
            shared.stop.set(true);
            let ended =
                timeout(TIMEOUT, join_all(drivers)).await.map_err(|_| "a request was not answered")?;
            for driver in ended {
                driver.map_err(|error| error.to_string())??;
            }
            let took_ms = shared.took_ms.take();
            Ok(Round { amount: took_ms.len() as u64, took_ms, spent, own: Some((LOAD, own_us)) })
        })
    }

    /// Drives one client until the round is over. Clients start with different offsets within the period.
    async fn drive<C: Client>(self, mut client: C, number: f64, shared: Rc<Shared>) -> Result<(), String> {
        let turn = number / self.clients as f64;
        let mut due = Instant::now() + self.period.unwrap_or_default().mul_f64(turn);
        while !shared.stop.get() {
            let mut is_late = false;
            if let Some(period) = self.period {
                due += period;
                is_late = Instant::now() > due;
                sleep_until(due.into()).await;
            }
            let counts = shared.counts.get();
            // A late answer has delayed this request: its latency counts from when it was due.
            let begun = if is_late { due } else { Instant::now() };
            let called = client.call().await;
            if called != Ok(true) {
                shared.ended.notify_one();
                return called.map(|_| ());
            }
            if counts && shared.counts.get() {
                shared.took_ms.borrow_mut().push(begun.elapsed().as_secs_f64() * 1e3);
            }
        }
        Ok(())
    }
}

/// What the clients of a round share.
#[derive(Default)]
struct Shared {
    counts: Cell<bool>,
    stop: Cell<bool>,
    took_ms: RefCell<Vec<f64>>,
    /// Notified when a client ends early.
    ended: Notify,
}
