//! `mesh bench` and `mesh rig`: executes the program `laboratory`, which users do not install.

use std::{os::unix::process::CommandExt as _, process::Command};

use crate::{
    cli::LaboratoryArgs,
    failure::{Failure, failed},
    programs,
};

/// Replaces this process by the laboratory, with the same arguments. Returns only on an error.
pub(crate) fn run(command: &str, args: LaboratoryArgs) -> Result<(), Failure> {
    let program = programs::beside("laboratory")?;
    // Its help then names the command as it was typed.
    let error = Command::new(&program).arg0("mesh").arg(command).args(args.args).exec();
    Err(failed!("cannot run {}: {error}", program.display()))
}
