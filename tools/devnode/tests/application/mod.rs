//! The application as CometBFT sees it: over its socket, through crashes.

mod checks;
mod crashes;
mod fixture;
