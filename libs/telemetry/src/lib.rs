//! What the mesh tells of itself: the one list of its metrics, and spans of a trace that goes through all
//! rooms.
//!
//! A span exists only where somebody decided that its trace is recorded (the edge, at the head of a request);
//! all others cost the look at a flag. Who records them is the chassis's matter.

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
