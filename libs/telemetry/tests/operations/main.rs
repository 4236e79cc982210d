//! The operators' files, compared with the list of metrics: alert rules and their tests, dashboards, the
//! table in the document.

#![allow(clippy::unwrap_used)] // in what the tests share

mod alerts;
mod dashboards;
mod document;
mod promtool;

use std::{fs, path::PathBuf};

use alerts::{RULES, TESTS};

/// A file of the repository.
fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Reads a file of the repository.
fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_default()
}

/// The words of a query that may be names: of metrics, labels and functions.
fn words(query: &str) -> impl Iterator<Item = &str> {
    query.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'))
}
