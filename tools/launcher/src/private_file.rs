//! Files that only their owner may read.

use std::{
    fs::{File, Metadata, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// A file that is written and synced beside its place. Dropped before [`Self::persist`], it leaves nothing.
#[derive(Debug)]
pub struct StagedFile {
    fresh: NamedTempFile,
    file: PathBuf,
    may_replace: bool,
}

impl StagedFile {
    /// Moves the file to its place, atomically.
    ///
    /// # Errors
    /// The folder cannot be written, or the file is there and may not be replaced.
    pub fn persist(self) -> io::Result<()> {
        let Self { fresh, file, may_replace } = self;
        let written = if may_replace { fresh.persist(&file) } else { fresh.persist_noclobber(&file) };
        written.map_err(|error| error.error)?;
        // The new name is durable once its folder is synced, which not every file system and user can do.
        let _ = File::open(folder_of(&file)).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

/// Writes a file atomically, readable by its owner only: after an error or a crash its previous content is
/// unchanged. One that is there is replaced only with `may_replace`.
///
/// # Errors
/// The path names no file, the folder cannot be written, or the file is there.
pub fn write_private(file: &Path, text: &[u8], may_replace: bool) -> io::Result<()> {
    stage_private(file, text, may_replace)?.persist()
}

/// Stages a file as [`write_private`] writes it.
///
/// # Errors
/// The path names no file, or the folder cannot be written.
pub fn stage_private(file: &Path, text: &[u8], may_replace: bool) -> io::Result<StagedFile> {
    // The umask may have taken rights from the owner.
    let make_private = |fresh: &File| fresh.set_permissions(Permissions::from_mode(0o600));
    stage(file, text, may_replace, make_private)
}

/// Stages a file that replaces another one, with the owner and the permissions of `before`.
///
/// # Errors
/// As [`stage_private`], or this user may not give a file to that owner.
pub fn stage_replacement(file: &Path, text: &[u8], before: &Metadata) -> io::Result<StagedFile> {
    let make_like = |fresh: &File| {
        let made = fresh.metadata()?;
        if (made.uid(), made.gid()) != (before.uid(), before.gid()) {
            fchown(fresh, Some(before.uid()), Some(before.gid()))?;
        }
        fresh.set_permissions(before.permissions())
    };
    stage(file, text, true, make_like)
}

fn stage(
    file: &Path,
    text: &[u8],
    may_replace: bool,
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<StagedFile> {
    file.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut fresh = NamedTempFile::new_in(folder_of(file))?;
    prepare(fresh.as_file())?;
    fresh.write_all(text)?;
    fresh.as_file().sync_all()?;
    Ok(StagedFile { fresh, file: file.to_owned(), may_replace })
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
