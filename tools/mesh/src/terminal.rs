//! What is written on standard error for people: lines that stay, and one line at a terminal that is kept
//! fresh.

use std::io::{self, IsTerminal as _, Write as _};

/// Writes a line that stays.
pub fn print_line(line: &str) {
    eprintln!("{line}");
}

/// Whether standard error is a terminal.
pub fn is_interactive() -> bool {
    io::stderr().is_terminal()
}

/// Shows a line in place of the one shown before; nothing where there is no terminal.
pub(crate) fn overwrite(line: &str) {
    if is_interactive() {
        // A terminal that went away says so by a signal.
        let _ = write!(io::stderr(), "\r\x1b[2K{line}");
    }
}

/// Removes the line that [`overwrite`] showed.
pub(crate) fn clear() {
    overwrite("");
}
