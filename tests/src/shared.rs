//! Fixtures that several tests of a process share.

use std::sync::LazyLock;

use tokio::{runtime::Runtime, sync::Mutex};

/// A fixture that tests use one after another. It lives on its own runtime, since connections and tasks end
/// with the runtime that began them, and each test has one.
#[derive(Debug)]
pub struct Shared<T> {
    runtime: LazyLock<Runtime>,
    fixture: Mutex<Option<T>>,
}

impl<T> Shared<T> {
    /// A fixture that is not started yet.
    pub const fn new() -> Self {
        Self { runtime: LazyLock::new(runtime), fixture: Mutex::const_new(None) }
    }

    /// Runs a test with the fixture, which the first call starts.
    pub fn run(&self, start: impl AsyncFnOnce() -> T, test: impl AsyncFnOnce(&mut T)) {
        self.runtime.block_on(async {
            let mut fixture = self.fixture.lock().await;
            let fixture = match &mut *fixture {
                Some(started) => started,
                empty => empty.insert(start().await),
            };
            test(fixture).await;
        });
    }
}

fn runtime() -> Runtime {
    Runtime::new().unwrap_or_else(|error| panic!("no runtime: {error}"))
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self::new()
    }
}
