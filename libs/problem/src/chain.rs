//! The text of an error and of its sources.

use std::{error::Error, iter};

/// The errors that caused `error`, outermost first, without itself.
pub fn sources<'a>(error: &'a dyn Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(error.source(), |cause: &&'a (dyn Error + 'static)| (*cause).source())
}

/// An error and its sources as one line, for logs and for people: `outer: inner: innermost`. A source is left
/// out when its text is in the line already, since many errors print their sources.
pub fn error_chain(error: &dyn Error) -> String {
    sources(error).fold(error.to_string(), |text, cause| {
        let cause_text = cause.to_string();
        if text.contains(&cause_text) { text } else { format!("{text}: {cause_text}") }
    })
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Outer(std::io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the segment cannot be written")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn sources_follow_their_error() {
        let error = Outer(std::io::Error::other("the disk is full"));
        assert_eq!(error_chain(&error), "the segment cannot be written: the disk is full");
        assert_eq!(sources(&error).count(), 1);
    }

    #[test]
    fn a_source_that_its_error_prints_is_not_repeated() {
        let error = std::io::Error::other(std::io::Error::other("the disk is full"));
        assert_eq!(error_chain(&error), "the disk is full");
    }
}
