//! The folder of one mesh: its paths, its lock and its state file.
//!
//! The lock excludes a second launcher. By the state file a later `up` continues with the same data.

use std::{
    fs::{self, File, OpenOptions},
    io,
    net::{IpAddr, SocketAddr},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::{folder, write_private};

/// The default name of the folder.
pub const DEFAULT_HOME: &str = ".mesh";

/// An error of a home. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Another launcher owns the folder.
    #[error("a mesh already runs in {0}; stop it first, or give another folder with --home")]
    Taken(PathBuf),
    /// The folder is of the user who called sudo.
    #[error(
        "{0} is yours, and root's files in it would lock you out; run this without sudo, or give another folder with --home"
    )]
    OfSudoCaller(PathBuf),
    /// The folder or a file in it cannot be used.
    #[error("cannot use {0}: {1}; give a folder that can be written with --home")]
    Unusable(PathBuf, #[source] io::Error),
    /// The state file is not what this program wrote.
    #[error(
        "{0} cannot be understood ({1}); move this file away and start again with the same options: the data stays, and a demo network gets empty blocks"
    )]
    SavedState(PathBuf, #[source] serde_json::Error),
}

/// What the database of a home was filled with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Data {
    /// The demo network, with the settings of its generator.
    Demo {
        /// The settings, as the generator writes them.
        settings: serde_json::Value,
    },
    /// The CSV files of a folder.
    Loaded {
        /// The folder.
        folder: PathBuf,
    },
}

/// The content of a home's state file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedState {
    /// The database's address without its password; `None` for the private one.
    pub database: Option<String>,
    /// What the database was filled with; `None` before.
    pub data: Option<Data>,
    /// Whether the filling is complete; false after an interrupted run.
    pub complete: bool,
    /// The ports of the edge at the last start; `None` before, and from an older release.
    #[serde(default)]
    pub ports: Option<Ports>,
}

/// The ports of the edge of a mesh: as they were requested, and as they were opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// The address on which both were requested.
    pub host: IpAddr,
    /// The requested port of HTTP; 0 for any.
    pub port: u16,
    /// The requested port of gRPC; 0 for any.
    pub grpc_port: u16,
    /// The address of HTTP.
    pub http: SocketAddr,
    /// The address of gRPC.
    pub grpc: SocketAddr,
}

/// The folder of one mesh.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
}

/// The exclusive lock of a home, released on drop and by the kernel when the process dies.
#[derive(Debug)]
pub struct HomeLock {
    files: [File; 2],
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread is forking has the file open until its exec.
        for file in &self.files {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

impl Home {
    /// A home at a path, without touching the disk. A relative path is resolved against the current folder.
    ///
    /// # Errors
    /// There is no current folder, or the path is empty.
    pub fn at(root: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { root: std::path::absolute(root)? })
    }

    /// The home used when none is given: `.mesh` in the repository, else in the current folder.
    ///
    /// # Errors
    /// There is no current folder.
    pub fn default_location() -> io::Result<Self> {
        let base = match crate::workspace::root() {
            Some(root) => root,
            None => std::env::current_dir()?,
        };
        Self::at(base.join(DEFAULT_HOME))
    }

    /// Creates the folders that every mesh needs, and corrects the mode of the one with the control socket.
    ///
    /// # Errors
    /// One of them cannot be made, or the home belongs to the user who called sudo.
    pub fn create(&self) -> Result<(), HomeError> {
        let caller = std::env::var("SUDO_UID").ok().and_then(|user| user.parse().ok());
        self.create_for(caller)
    }

    fn create_for(&self, sudo_caller: Option<u32>) -> Result<(), HomeError> {
        // PostgreSQL of a mesh that root starts runs as another user, below this folder.
        let is_root = rustix::process::geteuid().is_root();
        let owner = fs::metadata(&self.root).map(|home| home.uid()).ok();
        if is_root && owner.is_some_and(|owner| owner != 0 && Some(owner) == sudo_caller) {
            return Err(HomeError::OfSudoCaller(self.root.clone()));
        }
        let create_root = if is_root { folder::create_enterable } else { folder::create };
        create_root(&self.root).map_err(|source| unusable(&self.root, source))?;
        for folder in [self.node(), self.logs()] {
            folder::create(&folder).map_err(|source| unusable(&folder, source))?;
        }
        // Who can connect to the control socket can read every secret of the mesh.
        folder::create_private(&self.run()).map_err(|source| unusable(&self.run(), source))
    }

    /// Locks the home for this process; fails when another launcher has it.
    ///
    /// # Errors
    /// Another launcher has it, or the folder cannot be used.
    pub fn lock(&self) -> Result<HomeLock, HomeError> {
        let path = self.run().join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|source| unusable(&path, source))?;
        let folder = File::open(&self.root).map_err(|source| unusable(&self.root, source))?;
        // The folder, too, because the file may be removed while a mesh runs. Network filesystems have no locks of folders.
        let lock = HomeLock { files: [file, folder] };
        let locked = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive);
        match lock.files.each_ref().map(locked) {
            [Err(Errno::WOULDBLOCK), _] | [_, Err(Errno::WOULDBLOCK)] => {
                Err(HomeError::Taken(self.root.clone()))
            }
            [Err(errno), _] => Err(unusable(&path, errno.into())),
            [Ok(()), _] => Ok(lock),
        }
    }

    /// Removes the run-time files of an earlier run. The caller must hold the lock.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn clear_run(&self) -> Result<(), HomeError> {
        let run = self.run();
        let entries = fs::read_dir(&run).map_err(|source| unusable(&run, source))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "admin") {
                fs::remove_file(&path).map_err(|source| unusable(&path, source))?;
            }
        }
        Ok(())
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The private database server.
    pub fn postgres(&self) -> PathBuf {
        self.root.join("postgres")
    }

    /// The private bus server.
    pub fn nats(&self) -> PathBuf {
        self.root.join("nats")
    }

    /// Sealed history segments.
    pub fn segments(&self) -> PathBuf {
        self.root.join("segments")
    }

    /// The development node.
    pub fn node(&self) -> PathBuf {
        self.root.join("node")
    }

    /// Log files.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The folder of files that are valid only while the mesh runs.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The log file of one process.
    pub fn log(&self, service: &str, replica: u32) -> PathBuf {
        self.logs().join(format!("{service}-{replica}.log"))
    }

    /// The file into which a service writes its admin address; `life` counts the starts of a replica.
    pub fn admin_address(&self, service: &str, replica: u32, life: u64) -> PathBuf {
        let name = if life == 0 {
            format!("{service}-{replica}.admin")
        } else {
            format!("{service}-{replica}.{life}.admin")
        };
        self.run().join(name)
    }

    /// Reads the state file; the default value for a new home.
    ///
    /// # Errors
    /// The file cannot be read, or is not what this program wrote.
    pub fn saved_state(&self) -> Result<SavedState, HomeError> {
        let path = self.state_file();
        match fs::read(&path) {
            Ok(text) => {
                serde_json::from_slice(&text).map_err(|error| HomeError::SavedState(path.clone(), error))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SavedState::default()),
            Err(source) => Err(unusable(&path, source)),
        }
    }

    /// Replaces the state file atomically: a crash leaves the old state or the new one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_state(&self, state: &SavedState) -> Result<(), HomeError> {
        let path = self.state_file();
        let text = serde_json::to_vec(state).map_err(|error| HomeError::SavedState(path.clone(), error))?;
        write_private(&path, &text, true).map_err(|source| unusable(&path, source))
    }

    fn state_file(&self) -> PathBuf {
        self.root.join("mesh.json")
    }
}

fn unusable(path: &Path, source: io::Error) -> HomeError {
    HomeError::Unusable(path.to_owned(), source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_launcher_is_refused_until_the_first_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap();
        home.create().unwrap();
        let lock = home.lock().unwrap();
        assert!(matches!(home.lock(), Err(HomeError::Taken(_))));
        fs::remove_dir_all(home.run()).unwrap();
        home.create().unwrap();
        assert!(matches!(home.lock(), Err(HomeError::Taken(_))));
        drop(lock);
        home.lock().unwrap();
    }

    #[test]
    fn root_leaves_the_home_of_who_called_sudo_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home")).unwrap();
        home.create_for(Some(1000)).unwrap();
        if std::os::unix::fs::chown(home.root(), Some(1000), None).is_err() {
            eprintln!("skipped: only root can give a folder away");
            return;
        }
        assert!(matches!(home.create_for(Some(1000)), Err(HomeError::OfSudoCaller(_))));
        home.create_for(None).unwrap();
    }

    #[test]
    fn a_new_home_remembers_nothing_an_old_one_its_data_and_a_spoilt_memory_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap();
        assert_eq!(home.saved_state().unwrap(), SavedState::default());
        let state = SavedState {
            database: None,
            data: Some(Data::Demo { settings: serde_json::json!({"seed": 7}) }),
            complete: true,
            ports: Some(Ports {
                host: IpAddr::from([127, 0, 0, 1]),
                port: 0,
                grpc_port: 9090,
                http: ([127, 0, 0, 1], 40123).into(),
                grpc: ([127, 0, 0, 1], 9090).into(),
            }),
        };
        home.save_state(&state).unwrap();
        assert_eq!(home.saved_state().unwrap(), state);
        fs::write(home.state_file(), r#"{"database":"x","data":null,"complete":true}"#).unwrap();
        assert_eq!(home.saved_state().unwrap().ports, None, "the file of an older release");
        fs::write(home.state_file(), "{").unwrap();
        let message = home.saved_state().unwrap_err().to_string();
        assert!(message.contains("mesh.json") && message.contains("move this file away"), "{message}");
    }
}
