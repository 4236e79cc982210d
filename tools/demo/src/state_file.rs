//! Stores the simulator in a file, so that a restart need not simulate the whole history again. Without the
//! file, or with one that does not fit the store, a restart takes longer and has the same result.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use crate::{error::DemoError, simulator::Simulator};

/// Version of the file format; files of other versions are ignored.
const FORMAT: u32 = 3;

/// The path of the state file.
#[derive(Clone, Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
}

impl StateFile {
    pub(crate) fn new(path: &Path) -> Self {
        StateFile { path: path.to_owned() }
    }

    fn failed(&self, step: &'static str) -> impl Fn(std::io::Error) -> DemoError {
        let path = self.path.display().to_string();
        move |source| DemoError::State { path: path.clone(), step, source }
    }

    /// Reads the simulator. `None` when there is no file, or one that this release cannot read.
    pub(crate) fn load(&self) -> Result<Option<Simulator>, DemoError> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed("read")(error)),
        };
        let stored = serde_json::from_slice::<(u32, Simulator)>(&bytes).ok();
        Ok(stored.filter(|(format, _)| *format == FORMAT).map(|(_, mut simulator)| {
            simulator.rebuild();
            simulator
        }))
    }

    /// Replaces the file atomically.
    pub(crate) fn save(&self, simulator: &Simulator) -> Result<(), DemoError> {
        let bytes =
            serde_json::to_vec(&(FORMAT, simulator)).map_err(|error| self.failed("written")(error.into()))?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            fs::create_dir_all(folder).map_err(self.failed("written"))?;
        }
        let mut temporary = self.path.clone().into_os_string();
        temporary.push(".new");
        let write = || {
            let mut file = File::create(&temporary)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, &self.path)?;
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        write().map_err(self.failed("written"))
    }
}
