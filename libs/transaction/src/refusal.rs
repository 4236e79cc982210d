//! Why a node does not take a transaction: the code numbers of the network (contract 5.3) and a reason in
//! words.

/// The code of a bad signature, and of a transaction that was taken before.
pub const VALIDATION_FAILED: u32 = 51;
/// The code of bytes that are no transaction.
pub(crate) const UNDECODABLE: u32 = 60;
/// The code of the rules against spam: proof of work, its `tid`, quota.
pub(crate) const SPAM: u32 = 89;

/// A transaction is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (code {code})")]
pub struct Refusal {
    /// One of the network's code numbers, never 0.
    pub code: u32,
    /// For the sender, who finds it in `data`.
    pub reason: String,
}

impl Refusal {
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self { code: VALIDATION_FAILED, reason: reason.into() }
    }

    pub(crate) fn undecodable(reason: impl Into<String>) -> Self {
        Self { code: UNDECODABLE, reason: reason.into() }
    }

    pub(crate) fn spam(reason: impl Into<String>) -> Self {
        Self { code: SPAM, reason: reason.into() }
    }

    /// A transaction that was taken before (contract 5.5, reuse).
    #[must_use]
    pub fn replay() -> Self {
        Self::invalid("transaction was submitted before")
    }
}
