//! The program `mesh`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    mesh::run()
}
