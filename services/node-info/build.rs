//! Passes the commit of the build to the compiler: `MESH_COMMIT` when it is set (the build of an image has no
//! checkout), else that of the checkout.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=MESH_COMMIT");
    // The path differs in a worktree, and an archive of the sources has none. A path that does not exist
    // would cause a rebuild every time.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = env::var("MESH_COMMIT").ok().or_else(|| git(&["rev-parse", "HEAD"]));
    println!("cargo:rustc-env=MESH_COMMIT={}", commit.unwrap_or_else(|| "unknown".to_owned()));
}

/// The output of a git command; `None` outside a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
