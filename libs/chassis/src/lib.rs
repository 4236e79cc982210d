//! What every service is built on: configuration from the environment, logs, health, metrics, ordered stop.
//! It makes a `main` short and knows nothing of what the service does.

mod admin;
mod env;
mod run;

pub use env::Env;
pub use prometheus_client::registry::Registry;
pub use run::{Config, Failure, Running, Setup, run};
