//! Output: results on standard output; for people, on standard error, permanent lines and at a terminal one
//! line that is overwritten.

use std::{
    env,
    io::{self, IsTerminal as _, Write as _},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::tcgetwinsize,
};
use serde::Serialize;
use tokio::time::sleep;

use crate::failure::{Failure, failed};

const CLOSED_PERIOD: Duration = Duration::from_millis(200);

/// The line that [`overwrite`] has written and not removed.
static SHOWN: Mutex<String> = Mutex::new(String::new());

/// Writes a line of a command's result to standard output. A closed pipe is no failure: its reader has read enough.
///
/// # Errors
/// Standard output cannot be written, such as a file on a full disk.
pub fn print(line: &str) -> Result<(), Failure> {
    printed(try_print(line))
}

/// Whether a result was written; a closed pipe is no failure: its reader has read enough.
///
/// # Errors
/// As [`print`].
pub(crate) fn printed(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(failed!("cannot write the result to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// The failure to write a download to standard output. A closed pipe ends the command quietly.
pub(crate) fn unwritten(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::unread(),
        _ => failed!("cannot write to standard output ({error}); start again"),
    }
}

/// Writes a line of a command's result to standard output, which is flushed.
pub(crate) fn try_print(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

/// Resolves once the reader of standard output has closed it, if it is a pipe.
pub(crate) async fn output_closed() {
    let is_closed = || {
        let output = io::stdout();
        let mut polled = [PollFd::new(&output, PollFlags::empty())];
        poll(&mut polled, Some(&Timespec::default())).is_ok() && polled[0].revents().contains(PollFlags::ERR)
    };
    while !is_closed() {
        sleep(CLOSED_PERIOD).await;
    }
}

/// Writes a command's result to standard output as one line of JSON.
pub(crate) fn print_json(result: &impl Serialize) -> Result<(), Failure> {
    print(&serde_json::to_string(result)?)
}

/// Writes a permanent line to standard error in place of an overwritten one, without control characters, which names of
/// files may have. A closed one is no failure.
pub fn print_line(line: &str) {
    clear();
    let _ = writeln!(io::stderr(), "{}", printable(line));
}

/// A text without control characters other than line breaks and tabs.
pub(crate) fn printable(text: &str) -> String {
    text.replace(|letter: char| letter.is_control() && !matches!(letter, '\n' | '\t'), " ")
}

/// Whether standard error is a terminal.
pub fn is_interactive() -> bool {
    io::stderr().is_terminal()
}

/// Replaces the line shown before by this one, cut to the terminal's width; does nothing without a terminal that can
/// erase a line.
pub(crate) fn overwrite(line: &str) {
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    if is_dumb || !is_interactive() {
        return;
    }
    let columns = tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
    // A row that is full may wrap. An unknown width is 0.
    let width = columns.checked_sub(1).map_or(usize::MAX, usize::from);
    let line: String = line.replace(char::is_control, " ").chars().take(width).collect();
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if *shown != line {
        // A closed terminal sends SIGHUP, which is handled elsewhere.
        let _ = write!(io::stderr(), "\r\x1b[2K{line}");
        *shown = line;
    }
}

/// Removes the line that [`overwrite`] showed.
pub(crate) fn clear() {
    overwrite("");
}
