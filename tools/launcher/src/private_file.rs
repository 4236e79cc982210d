//! Files that only their owner may read.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

/// Writes a file atomically, readable by its owner only: after an error or a crash its previous content is
/// unchanged.
///
/// # Errors
///
/// The path names no file, or the folder cannot be written.
pub fn write_private(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut fresh = file.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
    fresh.push(".new");
    let fresh = file.with_file_name(fresh);
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    // The umask may have taken rights from the owner.
    open.set_permissions(Permissions::from_mode(0o600))?;
    open.write_all(text)?;
    open.sync_all()?;
    fs::rename(&fresh, file)
}
