//! Long computations of a service.

use mesh_problem::Problem;
use tokio::task::spawn_blocking;

use crate::router::unfinished;

/// Does work of a request: outside the thread of the actors when it is long, so that short requests do not wait
/// for it.
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
    spawn_blocking(work).await.unwrap_or_else(|error| Err(unfinished(&error)))
}
