//! Folders whose modes do not depend on the caller's umask: PostgreSQL started by root runs as another user,
//! who has to enter some of them.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::Path,
};

/// Creates a folder and its missing parents. Only their owner may write in them, also with umask 000.
pub(crate) fn create(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(folder)
}

/// Like [`create`]; every user may enter each folder that this call creates. Existing folders stay as they are.
pub(crate) fn create_enterable(folder: &Path) -> io::Result<()> {
    let missing = folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let missing: Vec<&Path> = missing.collect();
    create(folder)?;
    missing.into_iter().try_for_each(let_enter)
}

/// Like [`create`]; only the owner may enter the folder, also when it exists.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// Lets every user enter a folder of this user, without the right to list it.
///
/// # Errors
/// The folder is not there or belongs to another user.
pub fn let_enter(folder: &Path) -> io::Result<()> {
    let mode = fs::metadata(folder)?.permissions().mode() & 0o7777;
    match mode & 0o111 {
        0o111 => Ok(()),
        _ => fs::set_permissions(folder, Permissions::from_mode(mode | 0o111)),
    }
}
