//! Finds the programs of the project, which are installed in one folder with the running program, and runs the
//! laboratory.

use std::{os::unix::process::CommandExt as _, path::PathBuf, process::Command};

use mesh_launcher::services::SERVICES;

use crate::{
    cli::LaboratoryArgs,
    failure::{Failure, failed},
};

/// The path of the running program.
pub(crate) fn own() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| {
        failed!("cannot determine the folder of this program ({error}); start it by its path")
    })
}

/// The path of a program in the folder of the running program.
pub fn beside(name: &str) -> Result<PathBuf, Failure> {
    let running = own()?;
    let program = running.with_file_name(name);
    if program.is_file() {
        return Ok(program);
    }
    Err(failed!(
        "{name} is not in the folder of {}; install all programs of the mesh into one folder, or build them (`cargo build --workspace \
         --bins`, with --release if this one is)",
        running.display()
    ))
}

/// The folder with the programs of all services.
pub fn services() -> Result<PathBuf, Failure> {
    let mut folder = PathBuf::new();
    for service in SERVICES {
        folder = beside(service.name)?;
    }
    folder.pop();
    Ok(folder)
}

/// Replaces this process by the program `laboratory`, which users do not install, with the same arguments. Returns only on
/// an error.
pub(crate) fn run_laboratory(command: &str, args: LaboratoryArgs) -> Result<(), Failure> {
    let program = beside("laboratory")?;
    // Its help then names the command as it was typed.
    let error = Command::new(&program).arg0("mesh").arg(command).args(args.args).exec();
    Err(failed!("cannot run {}: {error}", program.display()))
}
