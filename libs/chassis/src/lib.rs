//! The framework of all services: configuration from the environment, logs, telemetry, health, ordered stop.
//! It is independent of what the service does.

pub mod accept;
mod admin;
mod arguments;
mod changes;
mod database;
mod env;
mod http_client;
mod lag_limit;
mod latest;
pub mod list_header;
mod log;
mod page_limits;
mod process;
mod run;
mod sampling;
mod stop_signals;
mod telemetry;
mod tls;

pub use changes::changes;
pub use database::{AddressCheck, Database};
pub use env::Env;
pub use http_client::{HttpClient, HttpClientError, HttpClientSettings};
pub use lag_limit::LagLimit;
pub use latest::Latest;
pub use log::{LogQueue, timestamp};
pub use mesh_telemetry::Registry;
pub use page_limits::PageLimits;
pub use run::{Config, Failure, Program, Service, Setup, cannot_listen, run};
pub use sampling::Sampler;
pub use stop_signals::StopSignals;
pub use tls::install_tls_provider;

/// mimalloc, because a request makes many short-lived small allocations; the system's allocator took an
/// eighth of the time. Without transparent huge pages, in which an idle service occupied 8 to 25 MiB of heap
/// instead of 1 to 6.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
