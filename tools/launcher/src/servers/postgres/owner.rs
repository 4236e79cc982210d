//! The system user that owns the data. PostgreSQL refuses to run as root, so root gives the data to an
//! ordinary user, in a folder that this user can reach.

use std::{
    fs, io,
    os::unix::{
        fs::{MetadataExt, PermissionsExt as _, chown, lchown, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use sha2::{Digest, Sha256};

use super::{ServerError, files};
use crate::{
    folder::{self, let_enter},
    servers::succeeds,
};

/// The folder for data whose own folder cannot be reached by its user.
const REACHABLE: &str = "/var/lib/mesh-postgres";

/// The users that are tried, in this order.
const USERS: [&str; 2] = ["postgres", "nobody"];

/// The user that owns the data and runs the server, when we are root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    pub(super) fn ids(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Changes the owner of a file or an empty folder to this user.
    pub(super) fn take(&self, path: &Path) -> Result<(), ServerError> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(ServerError::file(path))
    }

    /// Changes the owner of root's file at a path in a folder of this user, where it may be missing or a link.
    pub(super) fn take_from_root(&self, path: &Path) -> Result<(), ServerError> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_file() && found.uid() == 0 => {
                lchown(path, Some(self.uid), Some(self.gid)).map_err(ServerError::file(path))
            }
            _ => Ok(()),
        }
    }

    fn take_all(&self, folder: &Path) -> io::Result<()> {
        lchown(folder, Some(self.uid), Some(self.gid))?;
        if fs::symlink_metadata(folder)?.is_dir() {
            for entry in fs::read_dir(folder)? {
                self.take_all(&entry?.path())?;
            }
        }
        Ok(())
    }

    /// Corrects the owner and the mode of existing data, as a copy of a home by root may have changed them.
    fn correct(&self, data: &Path) -> Result<(), ServerError> {
        let Ok(found) = fs::metadata(data) else { return Ok(()) };
        if found.uid() != self.uid {
            self.take_all(data).map_err(ServerError::file(data))?;
        }
        // PostgreSQL refuses data that others may use.
        if found.permissions().mode() & 0o027 != 0 {
            fs::set_permissions(data, fs::Permissions::from_mode(0o700)).map_err(ServerError::file(data))?;
        }
        Ok(())
    }

    fn can_enter(&self, folder: &Path) -> bool {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "cd -- \"$1\"", "sh"]).arg(folder).uid(self.uid).gid(self.gid).current_dir("/");
        succeeds(&mut shell)
    }
}

/// Creates the folder; returns its real path and the owner of its data, `None` when this is not root.
pub(super) fn settle(folder: &Path) -> Result<(PathBuf, Option<Owner>), ServerError> {
    if !rustix::process::geteuid().is_root() {
        files::make_folder(folder)?;
        return Ok((fs::canonicalize(folder).map_err(ServerError::file(folder))?, None));
    }
    settle_in(folder, Path::new(REACHABLE))
}

fn settle_in(folder: &Path, reachable: &Path) -> Result<(PathBuf, Option<Owner>), ServerError> {
    if fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink()) && !folder.exists() {
        fs::remove_file(folder).map_err(ServerError::file(folder))?;
    }
    folder::create_enterable(folder).map_err(ServerError::file(folder))?;
    let mut real = fs::canonicalize(folder).map_err(ServerError::file(folder))?;
    let owner = owner_of(&real.join("data"))?;
    // An earlier start, under another umask, may have left these two. Without success the data moves.
    let _ = let_enter(&real);
    if real.starts_with(reachable) {
        create_reachable(reachable).map_err(ServerError::file(reachable))?;
    }
    if !owner.can_enter(&real) {
        real = move_within_reach(folder, &real, reachable)?;
    }
    if !owner.can_enter(&real) {
        return Err(ServerError::file(&real)(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "the system user of PostgreSQL (uid {}) cannot enter it: allow that for each folder of this path (`chmod o+x`)",
                owner.uid
            ),
        )));
    }
    owner.correct(&real.join("data"))?;
    Ok((real, Some(owner)))
}

/// Creates the folder for data of unreachable homes, or corrects its mode.
fn create_reachable(reachable: &Path) -> io::Result<()> {
    folder::create_enterable(reachable)?;
    fs::set_permissions(reachable, fs::Permissions::from_mode(0o755))
}

/// The owner of existing data when that is an ordinary user, else the first of [`USERS`] that exists.
fn owner_of(data: &Path) -> Result<Owner, ServerError> {
    if let Ok(found) = fs::metadata(data)
        && found.uid() != 0
    {
        return Ok(Owner { uid: found.uid(), gid: found.gid() });
    }
    USERS.iter().find_map(|name| Some(Owner { uid: id(name, "-u")?, gid: id(name, "-g")? })).ok_or_else(
        || {
            ServerError::Missing(
                "PostgreSQL refuses to run as root and there is no user `postgres`: add one with \
             `useradd --system postgres`, or run the mesh in containers with \
             `compose/secrets.sh && docker compose up --build --wait`"
                    .into(),
            )
        },
    )
}

fn id(user: &str, which: &str) -> Option<u32> {
    let output = Command::new("id").args([which, user]).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Moves a folder below `reachable` and leaves a link. A folder that an earlier home at this path has left there is not
/// touched: that home may have been moved, and its link still leads there.
fn move_within_reach(folder: &Path, real: &Path, reachable: &Path) -> Result<PathBuf, ServerError> {
    let digest = Sha256::digest(real.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let mut target = reachable.join(&name);
    for number in 2_u32.. {
        if !target.exists() {
            break;
        }
        target = reachable.join(format!("{name}-{number}"));
    }
    let act = || {
        create_reachable(reachable)?;
        if fs::rename(real, &target).is_err() {
            copy(real, &target)?;
            fs::remove_dir_all(real)?;
        }
        if fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink()) {
            fs::remove_file(folder)?;
        }
        symlink(&target, folder)
    };
    act().map_err(ServerError::file(&target))?;
    Ok(target)
}

/// Copies a folder to another file system, keeping owners and modes.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match Command::new("cp").arg("-a").arg("--").arg(from).arg(to).status()?.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("cannot copy {} there", from.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with_mode(mode: u32) -> tempfile::TempDir {
        tempfile::Builder::new().permissions(fs::Permissions::from_mode(mode)).tempdir().unwrap()
    }

    /// Only root changes the owner of the data.
    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[test]
    fn data_stays_in_a_home_that_its_owner_can_reach() {
        let home = folder_with_mode(0o755);
        let folder = home.path().join("postgres");
        let (real, owner) = settle(&folder).unwrap();
        assert_eq!(real, fs::canonicalize(&folder).unwrap());
        assert_eq!(owner.is_some(), is_root());
    }

    #[test]
    fn data_of_an_unreachable_home_moves_within_reach_and_is_found_again() {
        if !is_root() {
            return;
        }
        let (home, reachable) = (folder_with_mode(0o700), folder_with_mode(0o755));
        let folder = home.path().join("postgres");
        fs::create_dir_all(folder.join("data/base")).unwrap();
        fs::write(folder.join("data/base/1"), "kept").unwrap();

        let (real, owner) = settle_in(&folder, reachable.path()).unwrap();
        assert!(real.starts_with(reachable.path()), "{}", real.display());
        assert_eq!(fs::read_to_string(folder.join("data/base/1")).unwrap(), "kept");
        let taken = fs::metadata(real.join("data/base/1")).unwrap();
        assert_eq!(Some((taken.uid(), taken.gid())), owner.as_ref().map(Owner::ids));

        // Folders as an earlier release left them under umask 077, and a copy of the data by root.
        for left in [reachable.path(), &real] {
            fs::set_permissions(left, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let data = real.join("data");
        fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
        chown(&data, Some(0), Some(0)).unwrap();
        assert_eq!(settle_in(&folder, reachable.path()).unwrap(), (real.clone(), owner.clone()));
        let found = fs::metadata(&data).unwrap();
        assert_eq!((found.uid(), found.permissions().mode() & 0o777), (owner.unwrap().uid, 0o700));

        // The home was moved and another one is made: each has its own data.
        let moved = home.path().join("moved");
        fs::rename(&folder, &moved).unwrap();
        for _ in 0..2 {
            let (fresh, _) = settle_in(&folder, reachable.path()).unwrap();
            assert!(fresh != real && !fresh.join("data").exists());
            fs::remove_file(&folder).unwrap();
        }
        assert_eq!(fs::read_to_string(moved.join("data/base/1")).unwrap(), "kept");
    }

    #[test]
    fn a_path_that_stays_closed_is_named() {
        if !is_root() {
            return;
        }
        let (home, closed) = (folder_with_mode(0o700), folder_with_mode(0o700));
        let refused = settle_in(&home.path().join("postgres"), &closed.path().join("reachable")).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("cannot enter it") && text.contains("chmod o+x"), "{text}");
    }

    #[test]
    fn a_link_to_nowhere_is_replaced() {
        if !is_root() {
            return;
        }
        let home = folder_with_mode(0o755);
        let folder = home.path().join("postgres");
        symlink(home.path().join("gone"), &folder).unwrap();
        let (real, _) = settle_in(&folder, home.path()).unwrap();
        assert!(real.is_dir() && !fs::symlink_metadata(&folder).unwrap().is_symlink());
    }
}
