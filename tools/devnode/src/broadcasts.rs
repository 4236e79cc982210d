//! The record of broadcast calls, for drills that count how often each transaction was submitted.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use mesh_transaction::TxHash;
use parking_lot::Mutex;

/// The open record: one line per call, the method and the hash. Each line is written before the call
/// continues, so that it survives a kill of the process.
#[derive(Debug)]
pub(crate) struct Broadcasts {
    file: Mutex<File>,
}

impl Broadcasts {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file: Mutex::new(file) })
    }

    pub(crate) fn note(&self, method: &str, hash: &TxHash) {
        let line = format!("{method} {hash}\n");
        let mut file = self.file.lock();
        if let Err(error) = file.write_all(line.as_bytes()) {
            tracing::error!(%error, "a broadcast call could not be recorded");
        }
    }
}

/// Counts the broadcast calls of each transaction in a record. An incomplete line is left out.
pub fn received(record: &Path) -> io::Result<HashMap<TxHash, u64>> {
    let mut counts = HashMap::new();
    for line in std::fs::read_to_string(record)?.lines() {
        if let Some(hash) = line.split_once(' ').and_then(|(_, hash)| hash.parse().ok()) {
            *counts.entry(hash).or_default() += 1;
        }
    }
    Ok(counts)
}
