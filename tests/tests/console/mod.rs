//! The console in a real browser: every view on a demo network and on the recorded one shows what the API
//! says, also when services come and go, in front of hostile data, and for those who use a keyboard or a
//! screen reader.
//!
//! Where no Chromium is (`chromium`, `google-chrome`, or `MESH_TEST_CHROMIUM`) the tests say so and pass.
//! Pictures of what they saw are written to `target/console-screens`.

mod access;
mod browser;
mod built;
mod downloads;
mod explore;
mod hostile_texts;
mod keyboard;
mod markets;
mod now;
mod page;
mod protocol;
mod recorded;
mod services_down;
mod stage;
mod submit;
