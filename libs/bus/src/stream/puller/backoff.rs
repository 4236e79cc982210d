//! When to repeat a pull that failed.

use std::time::Duration;

use mesh_problem::Code;

/// Pause after the second failure; after the first there is none.
const MIN_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause after failures, doubling until then.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Whether another replica, or the same one later, may succeed.
pub(super) fn is_transient(code: Code) -> bool {
    matches!(code, Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted | Code::Canceled)
}

/// The pause after this many failures in a row, with jitter from a number that differs between streams.
pub(super) fn pause(failures: u32, spread: u64) -> Duration {
    if failures <= 1 {
        return Duration::ZERO;
    }
    let pause = MIN_PAUSE.saturating_mul(1 << (failures - 2).min(10)).min(MAX_PAUSE);
    let share = u32::try_from((spread.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 54).unwrap_or_default();
    pause / 2 + pause / 2 * share / 1024
}
