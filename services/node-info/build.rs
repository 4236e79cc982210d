//! Notes the commit that this is built from: `MESH_COMMIT` when set (an image has no checkout), else git's
//! own.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=MESH_COMMIT");
    // Elsewhere in a worktree, and nowhere in an archive of the sources. A path that is not there would be
    // built for each time.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = env::var("MESH_COMMIT").ok().or_else(|| git(&["rev-parse", "HEAD"]));
    println!("cargo:rustc-env=MESH_COMMIT={}", commit.unwrap_or_else(|| "unknown".to_owned()));
}

/// What git says, where it is a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
