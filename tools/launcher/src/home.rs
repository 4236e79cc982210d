//! The folder in which one mesh lives: who owns it, where each thing lies in it, and what data it holds.
//!
//! Comes in: the folder given with `--home`. Goes out: paths, the lock that keeps a second launcher away,
//! and the small state file by which a second `up` picks up its data.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// The name of the folder used when nothing else is said.
pub const DEFAULT_HOME: &str = ".mesh";

/// What can go wrong with a home. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Another launcher owns the folder.
    #[error("a mesh already runs in {0}; stop it first, or give another folder with --home")]
    Taken(PathBuf),
    /// The folder or a file in it cannot be used.
    #[error("cannot use {path}: {source}; give a folder that can be written with --home")]
    Unusable {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The state file is not what this program wrote.
    #[error("{path} cannot be understood ({source}); remove the home folder to start afresh")]
    SavedState {
        /// The state file.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
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

/// What a home remembers between two runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedState {
    /// Which database it is about; the private one has no name.
    pub database: Option<String>,
    /// What the database holds, or nothing yet.
    pub data: Option<Data>,
    /// Whether the filling ended; a run that was interrupted half way leaves this false.
    pub complete: bool,
}

/// The folder of one mesh.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
}

/// The right to run a mesh in a home. Held as long as this value lives, and given back by the kernel when
/// the process dies in any way.
#[derive(Debug)]
pub struct HomeLock {
    file: File,
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // Closing would not be enough: a child that another thread is just starting holds the file, too,
        // until it has become its program.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl Home {
    /// Names a home without touching the disk. A relative path counts from the current folder.
    pub fn at(root: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { root: std::path::absolute(root)? })
    }

    /// The home used when none is given: `.mesh` in the repository, else in the current folder.
    pub fn default_location() -> io::Result<Self> {
        let base = match crate::workspace::root() {
            Some(root) => root,
            None => std::env::current_dir()?,
        };
        Self::at(base.join(DEFAULT_HOME))
    }

    /// Makes the folders that every mesh needs.
    pub fn create(&self) -> Result<(), HomeError> {
        for folder in [self.root.clone(), self.node(), self.logs(), self.run()] {
            fs::create_dir_all(&folder).map_err(|source| unusable(&folder, source))?;
        }
        Ok(())
    }

    /// Takes the home for this process, or says that another launcher has it.
    pub fn lock(&self) -> Result<HomeLock, HomeError> {
        let path = self.run().join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|source| unusable(&path, source))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(HomeLock { file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(HomeError::Taken(self.root.clone())),
            Err(errno) => Err(unusable(&path, errno.into())),
        }
    }

    /// Removes what an earlier run left for its own time; only for whoever holds the lock.
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

    /// Files that mean something only while the mesh runs.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The log file of one process.
    pub fn log(&self, service: &str, replica: u32) -> PathBuf {
        self.logs().join(format!("{service}-{replica}.log"))
    }

    /// The file into which one life of a service writes its admin address.
    pub fn admin_address(&self, service: &str, replica: u32, life: u64) -> PathBuf {
        let name = if life == 0 {
            format!("{service}-{replica}.admin")
        } else {
            format!("{service}-{replica}.{life}.admin")
        };
        self.run().join(name)
    }

    /// Reads what the home remembers; a new home remembers nothing.
    pub fn saved_state(&self) -> Result<SavedState, HomeError> {
        let path = self.state_file();
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|source| HomeError::SavedState { path: path.clone(), source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SavedState::default()),
            Err(source) => Err(unusable(&path, source)),
        }
    }

    /// Writes the state file, so that a crash at any moment leaves the old state or the new one.
    pub fn save_state(&self, state: &SavedState) -> Result<(), HomeError> {
        let path = self.state_file();
        let text = serde_json::to_vec(state)
            .map_err(|source| HomeError::SavedState { path: path.clone(), source })?;
        write_atomically(&path, &text).map_err(|source| unusable(&path, source))
    }

    fn state_file(&self) -> PathBuf {
        self.root.join("mesh.json")
    }
}

/// Replaces a file in one step.
fn write_atomically(path: &Path, text: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("fresh");
    let mut file = File::create(&fresh)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

fn unusable(path: &Path, source: io::Error) -> HomeError {
    HomeError::Unusable { path: path.to_owned(), source }
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
        drop(lock);
        home.lock().unwrap();
    }

    #[test]
    fn a_new_home_remembers_nothing_and_an_old_one_its_data() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap();
        assert_eq!(home.saved_state().unwrap(), SavedState::default());
        let state = SavedState {
            database: None,
            data: Some(Data::Demo { settings: serde_json::json!({"seed": 7}) }),
            complete: true,
        };
        home.save_state(&state).unwrap();
        assert_eq!(home.saved_state().unwrap(), state);
    }

    #[test]
    fn a_spoilt_memory_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap();
        fs::write(folder.path().join("mesh.json"), "{").unwrap();
        let message = home.saved_state().unwrap_err().to_string();
        assert!(message.contains("mesh.json"), "{message}");
    }
}
