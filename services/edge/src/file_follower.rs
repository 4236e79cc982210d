//! Files that an operator replaces while the edge runs: what they hold is put in force whole or not at all.

use std::{io, sync::Arc, thread, time::Duration};

use tokio::{
    task::spawn_blocking,
    time::{Interval, interval},
};

/// Interval at which the files are read again.
const READ_INTERVAL: Duration = Duration::from_secs(2);

/// How long changed files must stay the same before they are in force: they may be half-written.
const STEADY_TIME: Duration = Duration::from_millis(300);

/// Finds out what the bytes mean.
type Parser<C, T> = dyn Fn(&C) -> io::Result<T> + Send + Sync;

/// Reads files of one kind again and again. `C`: their bytes, `T`: what these mean.
pub(crate) struct FileFollower<C, T> {
    /// The name in the log.
    what: &'static str,
    read: Arc<dyn Fn() -> io::Result<C> + Send + Sync>,
    parse: Arc<Parser<C, T>>,
    /// The bytes in force.
    last: Arc<C>,
    pace: Interval,
    /// The fault that was logged last.
    logged: Option<String>,
}

/// What the files held at one reading.
enum Content<C, T> {
    /// The bytes in force.
    Same,
    /// Bytes that changed meanwhile, so that it is not known yet whether they are good.
    Unsteady,
    /// Other bytes, and what they mean.
    New(C, T),
}

/// The result of one reading.
pub(crate) struct Reading<T> {
    /// The new meaning, when it has changed and is good.
    pub(crate) changed: Option<T>,
    /// Whether the files are faulty, so that an earlier content stays in force.
    pub(crate) is_faulty: bool,
}

impl<C: PartialEq + Send + Sync + 'static, T: Send + 'static> FileFollower<C, T> {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// When they cannot be read or parsed.
    pub(crate) fn start(
        what: &'static str,
        read: impl Fn() -> io::Result<C> + Send + Sync + 'static,
        parse: impl Fn(&C) -> io::Result<T> + Send + Sync + 'static,
    ) -> io::Result<(Self, T)> {
        let content = read()?;
        let first = parse(&content)?;
        let (read, parse) = (Arc::new(read), Arc::new(parse));
        let pace = interval(READ_INTERVAL);
        Ok((Self { what, read, parse, last: Arc::new(content), pace, logged: None }, first))
    }

    /// Waits for the next reading. Logs a fault once, and its end.
    pub(crate) async fn next(&mut self) -> Reading<T> {
        self.pace.tick().await;
        let (read, parse, last) = (Arc::clone(&self.read), Arc::clone(&self.parse), Arc::clone(&self.last));
        // A file may be large and its disk slow.
        let reading = spawn_blocking(move || {
            let content = read()?;
            if content == *last {
                return Ok(Content::Same);
            }
            thread::sleep(STEADY_TIME);
            if read()? != content {
                return Ok(Content::Unsteady);
            }
            let parsed = parse(&content)?;
            Ok(Content::New(content, parsed))
        });
        match reading.await.map_err(io::Error::other).flatten() {
            Ok(Content::Unsteady) => Reading { changed: None, is_faulty: self.logged.is_some() },
            Ok(Content::Same) => {
                self.end_fault();
                Reading { changed: None, is_faulty: false }
            }
            Ok(Content::New(content, parsed)) => {
                self.end_fault();
                self.last = Arc::new(content);
                Reading { changed: Some(parsed), is_faulty: false }
            }
            Err(error) => {
                let error = error.to_string();
                if self.logged.as_ref() != Some(&error) {
                    tracing::error!(
                        what = self.what,
                        error,
                        "files are faulty; the last good content stays in force"
                    );
                }
                self.logged = Some(error);
                Reading { changed: None, is_faulty: true }
            }
        }
    }

    /// Logs that the files are good again, if they were faulty.
    fn end_fault(&mut self) {
        if self.logged.take().is_some() {
            tracing::info!(what = self.what, "files are good again");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn a_half_written_file_is_not_in_force() {
        let contents = Mutex::new(VecDeque::from(["old", "", "new", "new", "new"]));
        let read = move || contents.lock().pop_front().ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
        let (mut follower, first) = FileFollower::start("keys", read, |text: &&str| Ok(*text)).unwrap();
        assert_eq!((first, follower.next().await.changed), ("old", None));
        assert_eq!(follower.next().await.changed, Some("new"));
    }
}
