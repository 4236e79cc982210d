//! The `ingest` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    mesh_ingest::main()
}
