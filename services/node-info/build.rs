//! Notes the commit that this is built from: `MESH_COMMIT` when set (an image has no checkout), else git's own.

use std::{env, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=MESH_COMMIT");
    println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    let commit = env::var("MESH_COMMIT").ok().or_else(head).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=MESH_COMMIT={commit}");
}

fn head() -> Option<String> {
    let output = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
