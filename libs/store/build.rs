//! Rebuilds the crate when a migration is added or removed: the macro that embeds them cannot see new files.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
