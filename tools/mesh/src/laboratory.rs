//! `mesh bench` and `mesh rig`: the program `laboratory`, which is no part of what users install, takes over.

use std::{os::unix::process::CommandExt as _, process::Command};

use crate::{cli::LaboratoryArgs, failure::Failure, programs};

/// Becomes the laboratory, with the same arguments. Returns only when that fails.
pub(crate) fn run(command: &str, args: LaboratoryArgs) -> Result<(), Failure> {
    let program = programs::beside("laboratory")?;
    // Its help speaks of what was typed.
    let error = Command::new(&program).arg0("mesh").arg(command).args(args.args).exec();
    Err(Failure::failed(format!("cannot run {}: {error}", program.display())))
}
