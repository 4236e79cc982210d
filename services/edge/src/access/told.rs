//! What those who answer a request know and its answer does not show, handed on as extensions of the response.

use std::sync::{Arc, OnceLock};

use mesh_problem::Problem;

/// The application numbers of a refusal.
#[derive(Debug, Clone)]
pub(crate) struct Numbers(pub(crate) Vec<u32>);

impl Numbers {
    /// Those of a problem.
    pub(crate) fn of(problem: &Problem) -> Self {
        Self(problem.details.iter().map(|detail| detail.number).collect())
    }
}

/// Why a download broke off behind its head: the application number, once it has.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamFailure(Arc<OnceLock<u32>>);

impl StreamFailure {
    /// Notes the first problem.
    pub(crate) fn note<T>(&self, pulled: &Result<T, Problem>) {
        if let Err(problem) = pulled {
            let _ = self.0.set(problem.number());
        }
    }

    /// The number, when there is one.
    pub(crate) fn number(&self) -> Option<u32> {
        self.0.get().copied()
    }
}
