//! One line that is kept fresh, for somebody at a terminal and nobody else.

use std::io::{self, Write as _};

use crate::up::is_watched;

/// Shows a line in the place of the one before.
pub(crate) fn show(line: &str) {
    if is_watched() {
        // A terminal that went away says so by a signal.
        let _ = write!(io::stderr(), "\r\x1b[2K{line}");
    }
}

/// Removes the line, so that others can be written.
pub(crate) fn end() {
    show("");
}
