//! Notes for the access log that an answer's status and headers do not show, as extensions of the response.

use std::sync::{Arc, OnceLock};

use mesh_problem::Problem;

/// The application numbers of a refusal.
#[derive(Debug, Clone)]
pub(crate) struct ErrorNumbers(pub(crate) Vec<u32>);

impl ErrorNumbers {
    /// The numbers of a problem.
    pub(crate) fn of(problem: &Problem) -> Self {
        Self(problem.details.iter().map(|detail| detail.number).collect())
    }
}

/// The application number of the problem that broke a download after its head, once it has.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamFailure(Arc<OnceLock<u32>>);

impl StreamFailure {
    /// Records the first problem.
    pub(crate) fn record<T>(&self, pulled: &Result<T, Problem>) {
        if let Err(problem) = pulled {
            let _ = self.0.set(problem.number());
        }
    }

    /// The number, if the download broke off.
    pub(crate) fn number(&self) -> Option<u32> {
        self.0.get().copied()
    }
}
