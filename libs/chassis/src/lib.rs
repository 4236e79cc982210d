//! What every service is built on: configuration from the environment, logs, telemetry, health, ordered stop.
//! It makes a `main` short and knows nothing of what the service does.

mod admin;
mod arguments;
mod database;
mod env;
mod heard;
mod lag;
mod process;
mod rows;
mod run;
mod sampling;
mod telemetry;
mod tls;

pub use database::Database;
pub use env::Env;
pub use heard::Heard;
pub use lag::Lag;
pub use mesh_telemetry::Registry;
pub use rows::Rows;
pub use run::{Config, Failure, Running, Setup, run};
pub use sampling::Sampling;
pub use tls::install_tls_provider;

/// A request makes many small allocations that live shortly; the system's allocator took an eighth of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
