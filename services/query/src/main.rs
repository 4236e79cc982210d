//! The `query` workload's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    mesh_query::main()
}
