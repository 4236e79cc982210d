//! Telemetry of the mesh: the one list of its metrics, and the spans of traces.
//!
//! A span exists only in a recorded trace; the edge decides that at the start of a request. Otherwise it costs the
//! check of a flag. The chassis exports spans.

mod calls;
mod context;
pub mod list;
mod prometheus_text;
mod registry;
pub mod span;

pub use calls::{Calls, code_name};
pub use context::TraceContext;
pub use list::{Kind, Metric};
pub use prometheus_text::prometheus_text;
pub use registry::{LabeledFamily, Registry, bytes_histogram, seconds_histogram};
