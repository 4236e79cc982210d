//! Examples of bodies. The build script reads them from tests/cases with the same types.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Examples of one operation.
#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Examples {
    /// Bodies of requests.
    #[serde(default)]
    pub(crate) requests: Vec<Example>,
    /// Bodies of responses.
    #[serde(default)]
    pub(crate) answers: Vec<Example>,
}

/// A body.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Example {
    /// Short description.
    pub(crate) summary: String,
    /// HTTP status that it comes with.
    #[serde(default = "ok")]
    pub(crate) status: u16,
    /// The body, as it is in the case.
    pub(crate) body: Box<RawValue>,
}

fn ok() -> u16 {
    200
}
