//! Files that only their owner may read.

use std::{
    fs::Permissions,
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use tempfile::NamedTempFile;

/// Writes a file atomically, readable by its owner only: after an error or a crash its previous content is
/// unchanged. One that is there is replaced only with `may_replace`.
///
/// # Errors
///
/// The path names no file, the folder cannot be written, or the file is there.
pub fn write_private(file: &Path, text: &[u8], may_replace: bool) -> io::Result<()> {
    file.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut fresh = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    // The umask may have taken rights from the owner.
    fresh.as_file().set_permissions(Permissions::from_mode(0o600))?;
    fresh.write_all(text)?;
    fresh.as_file().sync_all()?;
    let written = if may_replace { fresh.persist(file) } else { fresh.persist_noclobber(file) };
    written.map_err(|error| error.error)?;
    Ok(())
}
