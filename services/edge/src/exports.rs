//! How many downloads an address may have at the same time (contract section 7).

use std::{num::NonZeroUsize, sync::Arc};

use mesh_problem::{Code, NOT_MAPPED, Problem};

use crate::{
    address::Address,
    held::{Held, Hold},
};

/// The downloads of each address.
pub(crate) struct Exports {
    at_most: Option<NonZeroUsize>,
    held: Arc<Held<Address>>,
}

/// A download's place, until its body is gone. Where nothing is limited there is nothing to hold.
pub(crate) type ExportPlace = Option<Hold<Address>>;

impl Exports {
    /// So many for each; nothing = as many as it likes.
    pub(crate) fn new(at_most: Option<NonZeroUsize>) -> Self {
        Self { at_most, held: Arc::default() }
    }

    /// A place for one more download.
    ///
    /// # Errors
    /// When the address has as many as it may.
    pub(crate) fn enter(&self, client: Address) -> Result<ExportPlace, Problem> {
        let Some(at_most) = self.at_most else { return Ok(None) };
        let Some(place) = self.held.take(client, at_most.get()) else {
            let reason = "too many downloads go to this address";
            return Err(Problem::new(Code::ResourceExhausted, NOT_MAPPED, reason)
                .with_inner(format!("at most {at_most} at the same time")));
        };
        Ok(Some(place))
    }
}
