//! Files that only their owner may read.

use std::{
    fs::{File, Metadata, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown},
    path::Path,
};

use tempfile::NamedTempFile;

/// Writes a file atomically, readable by its owner only: after an error or a crash its previous content is
/// unchanged. One that is there is replaced only with `may_replace`.
///
/// # Errors
/// The path names no file, the folder cannot be written, or the file is there.
pub fn write_private(file: &Path, text: &[u8], may_replace: bool) -> io::Result<()> {
    // The umask may have taken rights from the owner.
    let make_private = |fresh: &File| fresh.set_permissions(Permissions::from_mode(0o600));
    write(file, text, may_replace, make_private)
}

/// Replaces a file as [`write_private`] does, with the owner and the permissions of `before`.
///
/// # Errors
/// As [`write_private`], or this user may not give a file to that owner.
pub fn rewrite(file: &Path, text: &[u8], before: &Metadata) -> io::Result<()> {
    let make_like = |fresh: &File| {
        let made = fresh.metadata()?;
        if (made.uid(), made.gid()) != (before.uid(), before.gid()) {
            fchown(fresh, Some(before.uid()), Some(before.gid()))?;
        }
        fresh.set_permissions(before.permissions())
    };
    write(file, text, true, make_like)
}

fn write(
    file: &Path,
    text: &[u8],
    may_replace: bool,
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    file.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut fresh = NamedTempFile::new_in(folder)?;
    prepare(fresh.as_file())?;
    fresh.write_all(text)?;
    fresh.as_file().sync_all()?;
    let written = if may_replace { fresh.persist(file) } else { fresh.persist_noclobber(file) };
    written.map_err(|error| error.error)?;
    // The new name is durable once its folder is synced, which not every file system and user can do.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}
