//! How errors of the node and the decoder are reported to the order of work.

use crate::{
    decode::DecodeError,
    node::FetchError,
    order::{NotDecoded, NotFetched, Reason},
};

pub(crate) fn not_fetched(height: u64, error: &FetchError) -> NotFetched {
    match error {
        FetchError::TooHigh => NotFetched::TooHigh,
        FetchError::NoResultsYet => NotFetched::NoResultsYet,
        FetchError::Unavailable(_) | FetchError::Limited { .. } => {
            tracing::debug!(height, %error, "a block was not fetched");
            NotFetched::Unavailable(format!("block {height} was not fetched: {error}"))
        }
        FetchError::Pruned { lowest } => {
            let last = lowest.saturating_sub(1);
            let text = format!(
                "missing blocks {height}-{last}; import segments, or name a node that has them in MESH_NODE_URL"
            );
            NotFetched::Never(Reason::Pruned, text)
        }
        FetchError::KeepsNoResults => {
            let text = format!("{error}; set discard_abci_responses = false, or name another node");
            NotFetched::Never(Reason::NoResults, text)
        }
        FetchError::TooLarge => NotFetched::Never(Reason::TooLarge, error.to_string()),
    }
}

pub(crate) fn not_decoded(error: DecodeError) -> NotDecoded {
    match error {
        DecodeError::Unavailable(text) => NotDecoded::Unavailable(text),
        DecodeError::Late(text) => NotDecoded::Late(text),
        DecodeError::TooLarge { .. } | DecodeError::ReplyTooLarge => {
            NotDecoded::Never(Reason::TooLarge, error.to_string())
        }
        error => NotDecoded::Never(Reason::Decode, error.to_string()),
    }
}
