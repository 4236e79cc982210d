//! Long computations of a service.

use std::sync::Once;

use mesh_problem::{NOT_MAPPED, Problem};
use rustix::process::nice;
use tokio::task::spawn_blocking;

/// Priority of long work on the scale of `nice`; on Linux each thread has its own.
const NICE: i32 = 10;

/// Does work of a request: when it is long, outside the thread of the actors and with a lower priority, so that short
/// requests do not wait for it, neither here nor in other processes of the machine.
///
/// # Errors
/// Those of the work, and an internal one when it panics.
pub async fn offload<T: Send + 'static>(
    is_long: bool,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if !is_long {
        return work();
    }
    let work = move || {
        lower_priority();
        work()
    };
    spawn_blocking(work).await.unwrap_or_else(|error| {
        let problem = Problem::internal(NOT_MAPPED, "the service could not finish this request");
        Err(problem.caused_by(error.to_string()))
    })
}

/// Lowers the priority of this thread, once.
fn lower_priority() {
    thread_local!(static LOWERED: Once = const { Once::new() });
    LOWERED.with(|lowered| {
        lowered.call_once(|| {
            if let Err(error) = nice(NICE) {
                tracing::warn!(%error, "long answers weigh as much as short ones");
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[tokio::test]
    async fn long_work_weighs_less_than_short_work() {
        let priority = || Ok(getpriority_process(None).unwrap());
        let own = priority().unwrap();
        for (is_long, expected) in [(false, own), (true, (own + NICE).min(19)), (true, (own + NICE).min(19))]
        {
            assert_eq!(offload(is_long, priority).await.unwrap(), expected);
        }
    }
}
