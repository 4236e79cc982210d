//! Output of the log: JSON lines on standard error. A service that logs only events writes them directly. A
//! service that logs a line per request puts all lines into a bounded queue, which a separate thread writes,
//! so that a slow reader of the log delays nothing. When the queue is full, lines are dropped and counted.

use std::{
    io::{self, Write},
    mem,
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use prometheus_client::metrics::counter::Counter;
use tracing_subscriber::fmt::{
    MakeWriter,
    format::Writer,
    time::{FormatTime, SystemTime},
};

/// Capacity of the queue, bytes. Lines of requests may use only a part of it, so that events are not dropped.
const CAPACITY: usize = 1 << 20;
const REQUEST_CAPACITY: usize = CAPACITY / 2;

/// The queue of this process, if it uses one.
static QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// The log of this process as a queue.
#[derive(Debug, Clone)]
pub struct LogQueue(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// Signals that the queue has lines, and that it is empty again.
    filled: Condvar,
    emptied: Condvar,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Lines dropped since the last batch was taken.
    dropped: u64,
    is_writing: bool,
}

impl LogQueue {
    /// Starts to queue all log lines of this process. `dropped` counts the dropped lines.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(dropped: Counter) -> io::Result<Self> {
        let queue = Self::with_writer(io::stderr(), dropped)?;
        Ok(QUEUE.get_or_init(|| queue).clone())
    }

    fn with_writer(out: impl Write + Send + 'static, dropped: Counter) -> io::Result<Self> {
        let (filled, emptied) = (Condvar::new(), Condvar::new());
        let queue = Self(Arc::new(Queue { waiting: Mutex::default(), filled, emptied, dropped }));
        let writing = Arc::clone(&queue.0);
        thread::Builder::new().name("log".to_owned()).spawn(move || writing.write_to(out))?;
        Ok(queue)
    }

    /// Queues a line about a request, which must end with a line feed.
    pub fn push(&self, line: &[u8]) {
        self.0.put(line, REQUEST_CAPACITY);
    }

    /// Waits until all lines are written, for `within` at most.
    fn flush(&self, within: Duration) {
        let waits = |waiting: &mut Waiting| waiting.is_writing || !waiting.lines.is_empty();
        self.0.emptied.wait_while_for(&mut self.0.waiting.lock(), waits, within);
    }
}

impl Queue {
    fn put(&self, line: &[u8], room: usize) {
        let mut waiting = self.waiting.lock();
        if waiting.lines.len() + line.len() > room {
            waiting.dropped += 1;
            self.dropped.inc();
            return;
        }
        waiting.lines.extend_from_slice(line);
        drop(waiting);
        self.filled.notify_one();
    }

    /// Writes the queued lines, forever.
    fn write_to(&self, mut out: impl Write) {
        let mut lines = Vec::new();
        loop {
            lines.clear();
            let mut waiting = self.waiting.lock();
            waiting.is_writing = false;
            while waiting.lines.is_empty() {
                self.emptied.notify_all();
                self.filled.wait(&mut waiting);
            }
            waiting.is_writing = true;
            mem::swap(&mut waiting.lines, &mut lines);
            let dropped = mem::take(&mut waiting.dropped);
            drop(waiting);
            if dropped > 0 {
                let now = timestamp();
                let line = format!(
                    "{{\"timestamp\":\"{now}\",\"level\":\"WARN\",\"message\":\"lines of the log were dropped\",\
                     \"lines\":{dropped},\"target\":\"mesh_chassis::log\"}}\n"
                );
                lines.extend_from_slice(line.as_bytes());
            }
            // An error could only be reported to this log.
            let _ = out.write_all(&lines);
        }
    }
}

/// The current time in the log's format.
pub fn timestamp() -> String {
    let mut text = String::new();
    // Writing to a `String` does not fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

/// Waits until the queue is empty, if there is one.
pub(crate) fn flush(within: Duration) {
    if let Some(queue) = QUEUE.get() {
        queue.flush(within);
    }
}

/// The writer of events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Events;

impl<'a> MakeWriter<'a> for Events {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

impl Write for Events {
    /// Writes one whole line: each call gets one.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match QUEUE.get() {
            None => io::stderr().write(line),
            Some(queue) => {
                queue.0.put(line, CAPACITY);
                Ok(line.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    /// A writer that takes a batch of lines at each signal.
    struct BatchWriter(Receiver<()>, Sender<Vec<u8>>);

    impl Write for BatchWriter {
        fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            self.1.send(lines.to_vec()).map_err(io::Error::other)?;
            Ok(lines.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn queue() -> (LogQueue, Counter, Sender<()>, Receiver<Vec<u8>>) {
        let ((go, signals), (write, written), dropped) = (channel(), channel(), Counter::default());
        (LogQueue::with_writer(BatchWriter(signals, write), dropped.clone()).unwrap(), dropped, go, written)
    }

    #[test]
    fn lines_are_written_in_their_order_and_a_flush_waits_for_them() {
        let (queue, dropped, go, written) = queue();
        for line in ["one\n", "two\n", "three\n"] {
            queue.push(line.as_bytes());
        }
        for _ in 0..3 {
            go.send(()).unwrap();
        }
        queue.flush(SOON);
        let lines: Vec<u8> = written.try_iter().flatten().collect();
        assert_eq!(lines, b"one\ntwo\nthree\n");
        assert_eq!(dropped.get(), 0);
    }

    #[test]
    fn a_slow_reader_delays_nothing_and_gets_the_number_of_dropped_lines() {
        let (queue, dropped, go, written) = queue();
        let line = [b"x".repeat(1023), b"\n".to_vec()].concat();
        for _ in 0..4096 {
            queue.push(&line);
        }
        // A batch may have been taken before the queue was full.
        let lost = dropped.get();
        assert!((4096 - 1024..=4096 - 512).contains(&lost), "{lost} lines were dropped");
        queue.0.put(b"an event\n", CAPACITY);
        assert_eq!(dropped.get(), lost, "there is room for events all the same");
        // The writer may have taken several batches; each reports the lines dropped since the previous one.
        for _ in 0..4 {
            go.send(()).unwrap();
        }
        let mut read = String::new();
        while !(read.contains("an event\n") && dropped_by(&read) == lost) {
            read += &String::from_utf8(written.recv_timeout(SOON).unwrap()).unwrap();
        }
    }

    /// How many lines a log says were dropped.
    fn dropped_by(log: &str) -> u64 {
        log.split("\"lines\":").skip(1).filter_map(|rest| rest.split(',').next()?.parse::<u64>().ok()).sum()
    }
}
