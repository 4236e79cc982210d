//! The supply chain: what `deny.toml` refuses, by cargo-deny where it is installed.

use std::path::Path;

use tokio::process::Command;

use super::{step, succeeds};
use crate::failure::Failure;

/// Licences, sources and versions, which need no network.
const OFFLINE: [&str; 7] = ["deny", "--all-features", "--offline", "check", "bans", "licenses", "sources"];

/// Runs the checks. Returns those left out, each as a clause.
pub(super) async fn check(root: &Path) -> Result<Vec<String>, Failure> {
    let cargo = |args: &[&str]| {
        let mut command = Command::from(cargo_mesh::cargo());
        command.args(args).current_dir(root);
        command
    };
    if !succeeds(cargo(&["deny", "--version"])).await {
        let why = "cargo-deny is not installed (`cargo install --locked cargo-deny`)";
        return Ok(vec![format!("the checks of the supply chain, because {why}")]);
    }
    step(root, "supply chain", &OFFLINE, &[]).await?;
    if !succeeds(cargo(&["deny", "fetch", "db"])).await {
        return Ok(vec!["the check for known holes, because their database cannot be fetched".to_owned()]);
    }
    step(root, "known holes", &["deny", "--all-features", "check", "advisories"], &[]).await?;
    Ok(Vec::new())
}
