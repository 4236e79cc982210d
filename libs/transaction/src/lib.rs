//! The rules of transactions (contract, section 5): their one encoding and hash, what is signed, the proof of
//! work, and the rules against spam.
//!
//! Pure: no bus, no SQL, no HTTP, no clock. A node judges with [`Candidate::read`] and [`SpamFilter`], a
//! client makes transactions with [`Key`] and [`search`].

mod candidate;
mod encoding;
mod refusal;
mod rules;
mod search;
mod signature;
mod spam;
mod work;

pub use candidate::{Candidate, Network, Proof};
pub use encoding::{DecodeError, ParseHashError, TxHash, decode, encode};
pub use refusal::{Refusal, VALIDATION_FAILED};
pub use rules::{OutOfRange, SpamRules};
pub use search::{SearchControl, search};
pub use signature::{ALGORITHM, Key, SignatureError, digest, verify};
pub use spam::{Admission, Block, SpamFilter};
pub use work::{MAX_BITS, Puzzle};
