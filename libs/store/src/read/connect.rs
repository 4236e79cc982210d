//! How connections are made again.

use std::time::Duration;

/// Longest time to make a connection. One that a frozen server has not answered is answered when it wakes.
pub(super) const CONNECT_AT_MOST: Duration = Duration::from_secs(3);

const AT_LEAST: Duration = Duration::from_millis(10);
const AT_MOST: Duration = Duration::from_millis(250);

/// The pauses between attempts to connect: longer each time, but never so long that a server that has come back
/// waits for us.
#[derive(Debug)]
pub(super) struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(AT_LEAST)
    }
}

impl Pause {
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(AT_MOST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_quarter_of_a_second() {
        let mut pause = Pause::default();
        let pauses: Vec<_> = (0..7).map(|_| pause.next().as_millis()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 250, 250]);
    }
}
