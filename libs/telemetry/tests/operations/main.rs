//! The operators' files, compared with the list of metrics: alert rules and their tests, dashboards, the
//! table in the document. Generated files are written by `MESH_UPDATE=1 cargo test -p mesh-telemetry`.

#![allow(clippy::unwrap_used)] // in what the tests share

mod alerts;
mod dashboards;
mod document;
mod promtool;

use std::{env, fs, path::PathBuf};

/// A file of the repository.
fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Reads a file of the repository.
fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_default()
}

/// Compares a file with its generated text, or writes it.
fn assert_generated(name: &str, text: &str) {
    if env::var_os("MESH_UPDATE").is_some() {
        let folder = path(name);
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        return fs::write(path(name), text).unwrap();
    }
    let kept = read(name);
    let differs = kept.lines().zip(text.lines()).position(|(kept, made)| kept != made);
    assert!(
        kept == text,
        "{name} is not what is made (line {}): MESH_UPDATE=1 cargo test -p mesh-telemetry",
        differs.map_or("count".to_owned(), |line| (line + 1).to_string())
    );
}

/// The words of a query that may be names: of metrics, labels and functions.
fn words(query: &str) -> impl Iterator<Item = &str> {
    query.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'))
}
