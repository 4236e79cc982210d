//! Building the services when the tool stands in a checkout.

use std::path::{Path, PathBuf};

use mesh_launcher::services::SERVICES;
use mesh_launcher::workspace::build_place;
use tokio::process::Command;

use super::say;
use crate::failure::Failure;
use crate::group;

/// Builds the services beside the running program, in its own profile, and returns their folder. An installed
/// program has them beside it already.
pub(crate) async fn build(program: &Path) -> Result<PathBuf, Failure> {
    if let Some(place) = build_place(program) {
        say("building");
        let mut cargo = cargo();
        cargo.args(["build", "--workspace", "--bins", "--profile", &place.profile]);
        cargo.arg("--target-dir").arg(&place.target).current_dir(&place.root);
        if !super::is_watched() {
            cargo.arg("--quiet");
        }
        let status = group::run(cargo).await.map_err(|error| {
            Failure::missing(format!("cannot run cargo ({error}); install Rust from https://rustup.rs"))
        })?;
        if !status.success() {
            return Err(Failure::failed("the build failed; correct what cargo says above and try again"));
        }
    }
    let folder = program.parent().unwrap_or(Path::new("/")).to_owned();
    for service in SERVICES {
        if !folder.join(service.name).is_file() {
            return Err(Failure::failed(format!(
                "{} is not beside {}; install all binaries of the mesh into one folder, or run `cargo mesh up` in a checkout",
                service.name,
                program.display()
            )));
        }
    }
    Ok(folder)
}

/// The cargo that started us, else the one on the path. Of what `cargo run` says about our own package it hears nothing:
/// build scripts that read these names would run again, and all that depends on them would be built again.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    cargo
}
