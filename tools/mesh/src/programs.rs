//! The programs of the project, which lie in one folder: that of the program that runs.

use std::path::PathBuf;

use mesh_launcher::services::SERVICES;

use crate::failure::{Failure, cannot};

/// A program beside the one that runs.
///
/// # Errors
///
/// It is not there.
pub fn beside(name: &str) -> Result<PathBuf, Failure> {
    let running = std::env::current_exe().map_err(|error| cannot("tell where this program lies", &error))?;
    let program = running.with_file_name(name);
    if program.is_file() {
        return Ok(program);
    }
    Err(Failure::failed(format!(
        "{name} is not beside {}; install all programs of the mesh into one folder, or build them (`cargo build --workspace \
         --bins`, with --release if this one is)",
        running.display()
    )))
}

/// The folder of all services.
///
/// # Errors
///
/// One of them is not there.
pub fn services() -> Result<PathBuf, Failure> {
    let mut folder = PathBuf::new();
    for service in SERVICES {
        folder = beside(service.name)?;
    }
    folder.pop();
    Ok(folder)
}
