//! The application as CometBFT sees it: over its socket, through crashes.
#![allow(clippy::unwrap_used)]

mod checks;
mod crashes;
mod stage;
