//! Durations of calls by operation and gRPC code, for every transport.

use std::borrow::Cow;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, histogram::Histogram},
};

use crate::{
    list::Metric,
    registry::{Registry, seconds_histogram},
};

/// The names of the gRPC codes, by number.
const CODES: [&str; 17] = [
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
    "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
];

/// The name of a gRPC code as telemetry writes it.
pub fn code_name(number: u8) -> &'static str {
    CODES.get(usize::from(number)).copied().unwrap_or("UNKNOWN")
}

/// Calls of one system.
#[derive(Debug, Clone)]
pub struct Calls {
    system: &'static str,
    seconds: Family<Labels, Histogram, fn() -> Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    rpc_system_name: &'static str,
    rpc_method: Cow<'static, str>,
    rpc_response_status_code: &'static str,
}

impl Calls {
    /// An empty family.
    pub fn new(system: &'static str) -> Self {
        Self { system, seconds: Family::new_with_constructor(seconds_histogram) }
    }

    /// Registers the calls, and returns them.
    pub fn register(self, registry: &mut Registry, listed: &Metric) -> Self {
        registry.add(listed, self.seconds.clone());
        self
    }

    /// The histogram of the calls of a method that end with a code (its gRPC number).
    pub fn histogram(&self, method: impl Into<Cow<'static, str>>, code: u8) -> Histogram {
        let labels = Labels {
            rpc_system_name: self.system,
            rpc_method: method.into(),
            rpc_response_status_code: code_name(code),
        };
        self.seconds.get_or_create_owned(&labels)
    }
}
