//! The file of a key: a JSON object that only its owner may read.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use mesh_launcher::write_private;
use mesh_transaction::Key;
use rand::Rng as _;
use serde::{Deserialize, Serialize};

use crate::{
    failure::{Failure, failed},
    keys::followed,
};

/// Limit of the length of a key file, bytes.
const LONGEST_FILE: u64 = 4096;

#[derive(Deserialize, Serialize)]
struct KeyFile {
    public_key: String,
    /// The seed of 32 bytes as hex.
    secret_key: String,
}

pub(super) fn make(path: &Path, replace: bool) -> Result<Key, Failure> {
    let seed: [u8; 32] = rand::rng().random();
    let key = Key::from_seed(&seed);
    let key_file = KeyFile { public_key: key.public(), secret_key: hex::encode(seed) };
    let text = serde_json::to_string(&key_file)?;
    let path = if replace { &followed(path)? } else { path };
    write_private(path, format!("{text}\n").as_bytes(), replace).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => failed!(
            "{} is there already; give another file, or --force to lose the key in it",
            path.display()
        ),
        _ => failed!("cannot write {} ({error}); give another file", path.display()),
    })?;
    Ok(key)
}

pub(super) fn read(path: &Path) -> Result<Key, Failure> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST_FILE).read_to_string(&mut text));
    read.map_err(|error| {
        failed!("cannot read the key in {} ({error}); `mesh tx keygen` makes one", path.display())
    })?;
    let mut seed = [0; 32];
    let key_file: Option<KeyFile> = serde_json::from_str(&text).ok();
    let key = key_file.and_then(|key_file| {
        hex::decode_to_slice(&key_file.secret_key, &mut seed).ok()?;
        Some(Key::from_seed(&seed)).filter(|key| key.public() == key_file.public_key)
    });
    key.ok_or_else(|| failed!("{} holds no key; `mesh tx keygen` makes one", path.display()))
}
