//! Examples of bodies. The build takes them out of tests/cases and shares these types.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Examples of one operation.
#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Examples {
    /// Bodies of requests.
    #[serde(default)]
    pub(crate) requests: Vec<Example>,
    /// Bodies of answers.
    #[serde(default)]
    pub(crate) answers: Vec<Example>,
}

/// A body.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Example {
    /// What it shows.
    pub(crate) summary: String,
    /// HTTP status that it comes with.
    #[serde(default = "ok")]
    pub(crate) status: u16,
    /// The body, as it is written in the case.
    pub(crate) body: Box<RawValue>,
}

fn ok() -> u16 {
    200
}
