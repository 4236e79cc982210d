//! Output for people on standard error: permanent lines, and at a terminal one line that is overwritten.

use std::io::{self, IsTerminal as _, Write as _};

/// Writes a permanent line.
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
