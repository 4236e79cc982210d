//! `mesh watch`: watches a read of the gateway, prints each change, and reconnects when the connection is lost.

pub(crate) mod args;
mod changes;
mod report;

use std::{io, num::NonZeroU64, pin::pin, time::Duration};

use jiff::Timestamp;
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

use self::{
    args::WatchArgs,
    report::{Printed, Report},
};
use crate::{
    events::{Event, Events, SILENCE},
    failure::{Failure, failed},
    gateway::{Gateway, GatewayError},
    pause::{LONGEST_REQUESTED, Pauses},
    signals,
    terminal::{output_closed, print_line, try_print},
};

/// Delay before a reconnection, until the gateway sends one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest reconnect delay while the gateway is unreachable.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// After this time without an answer, "lost" is printed.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// Watches until the count is reached, a stop signal is received, or the output is closed.
pub(crate) async fn watch(args: WatchArgs) -> Result<(), Failure> {
    let mut signals = signals::watch()?;
    let url = args.read.url(&args.gateway.url)?;
    let gateway = Gateway::new(&args.gateway.at(url.clone()), SILENCE, |client| client)?;
    let mut watch = Watch {
        gateway: &gateway,
        url: url.as_str(),
        report: Report::new(url.as_str(), args.json),
        left: args.count,
        pauses: Pauses::new(FIRST_PAUSE, LONGEST_PAUSE),
        height: None,
        has_begun: false,
        is_lost: false,
    };
    tokio::select! {
        outcome = watch.run() => outcome,
        () = signals.stop() => Ok(()),
        () = output_closed() => Ok(()),
    }
}

struct Watch<'a> {
    gateway: &'a Gateway,
    url: &'a str,
    report: Report,
    /// Remaining events, if they are counted.
    left: Option<NonZeroU64>,
    pauses: Pauses,
    height: Option<u64>,
    /// Whether the gateway has sent events.
    has_begun: bool,
    /// Whether "lost" was printed.
    is_lost: bool,
}

enum End {
    /// The gateway ended the stream, as before it stops, or the stream broke.
    Lost(Option<GatewayError>),
    /// Enough was printed.
    Done,
}

impl<'a> Watch<'a> {
    async fn run(&mut self) -> Result<(), Failure> {
        loop {
            let end = match self.open().await {
                Ok(events) => self.print_all(events).await?,
                Err(error) => End::Lost(Some(error)),
            };
            let error = match end {
                End::Done => return Ok(()),
                End::Lost(error) => error,
            };
            if let Some(error) = &error {
                self.judge(error)?;
            }
            let wish = match error {
                Some(GatewayError::Status { retry_after, .. }) => retry_after,
                _ => None,
            };
            sleep(self.pauses.next(wish)).await;
        }
    }

    /// Opens the stream; prints "lost" when a gateway that has sent events takes long to answer.
    async fn open(&mut self) -> Result<Events<'a>, GatewayError> {
        let opening = Events::open(self.gateway, self.url, self.height);
        let mut opening = pin!(opening);
        if let Ok(opened) = timeout(ANSWER_WITHIN, &mut opening).await {
            return opened;
        }
        if self.has_begun {
            self.say_lost("no answer");
        }
        opening.await
    }

    fn say_lost(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_lost, true) {
            print_line(&format!("lost: {why}; reconnecting"));
        }
    }

    /// Fails for a permanent error; prints a temporary one, once.
    fn judge(&mut self, error: &GatewayError) -> Result<(), Failure> {
        match error {
            GatewayError::Unanswered { .. } if !self.has_begun => {
                Err(failed!("no answer from {} ({error}); {}", self.url, error.advice()))
            }
            GatewayError::Foreign(why) => Err(Failure::failed(why)),
            error if !error.is_temporary() => Err(failed!("refused: {error}")),
            error => {
                self.say_lost(&error.to_string());
                Ok(())
            }
        }
    }

    async fn print_all(&mut self, mut events: Events<'_>) -> Result<End, Failure> {
        if std::mem::take(&mut self.is_lost) {
            print_line("reconnected");
        }
        (self.has_begun, self.pauses.failures) = (true, 0);
        loop {
            let event = events.next().await;
            self.pauses.first = events.retry.unwrap_or(FIRST_PAUSE).min(LONGEST_REQUESTED);
            self.height = events.height;
            match event {
                Ok(Some(event)) => {
                    if self.print(&event).await? {
                        return Ok(End::Done);
                    }
                }
                Ok(None) => return Ok(End::Lost(None)),
                Err(error) => return Ok(End::Lost(Some(error))),
            }
        }
    }

    /// Prints the change in an event. Returns whether it was the last one.
    async fn print(&mut self, event: &Event) -> Result<bool, Failure> {
        let time = Timestamp::now().strftime("%H:%M:%SZ").to_string();
        let printed = self.report.event(event, &time).map_err(|error| failed!("{error}"))?;
        let Some(Printed { result, note }) = printed else { return Ok(false) };
        note.iter().for_each(|note| print_line(note));
        if let Some(result) = result {
            // On another thread: the reader may be slow, and signals must still be handled.
            match spawn_blocking(move || try_print(&result)).await.unwrap_or_else(|error| Err(error.into())) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(true),
                Err(error) => return Err(failed!("cannot write to standard output ({error})")),
            }
        }
        let Some(left) = self.left else { return Ok(false) };
        self.left = NonZeroU64::new(left.get() - 1);
        Ok(self.left.is_none())
    }
}
