//! Output: results on standard output; for people, on standard error, permanent lines and at a terminal one
//! line that is overwritten.

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::failure::Failure;

/// Writes a line of a command's result to standard output.
pub(crate) fn print(line: &str) {
    // A closed pipe is no failure: its reader has read enough.
    let _ = writeln!(io::stdout(), "{line}");
}

/// Writes a command's result to standard output as one line of JSON.
pub(crate) fn print_json(result: &impl Serialize) -> Result<(), Failure> {
    print(&serde_json::to_string(result)?);
    Ok(())
}

/// Writes a permanent line to standard error.
pub fn print_line(line: &str) {
    eprintln!("{line}");
}

/// Whether standard error is a terminal.
pub fn is_interactive() -> bool {
    io::stderr().is_terminal()
}

/// Replaces the line shown before by this one; does nothing without a terminal.
pub(crate) fn overwrite(line: &str) {
    if is_interactive() {
        // A closed terminal sends SIGHUP, which is handled elsewhere.
        let _ = write!(io::stderr(), "\r\x1b[2K{line}");
    }
}

/// Removes the line that [`overwrite`] showed.
pub(crate) fn clear() {
    overwrite("");
}
