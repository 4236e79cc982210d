//! Exports a hash of the migrations and grants, so that a template database is used only by builds that would
//! create the same one.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::Path,
};

fn main() -> io::Result<()> {
    let migrations = Path::new("../../libs/store/migrations");
    println!("cargo::rerun-if-changed={}", migrations.display());
    let mut files: Vec<_> =
        fs::read_dir(migrations)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.sort();
    let grants = Path::new("../../tools/loader/grants.sql");
    println!("cargo::rerun-if-changed={}", grants.display());
    files.push(grants.to_owned());
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.file_name().hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    println!("cargo::rustc-env=MESH_TESTBED_MIGRATIONS={:016x}", hasher.finish());
    Ok(())
}
