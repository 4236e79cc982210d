//! The `export` workload's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    mesh_export::main()
}
