//! The address of the bus and the credentials of each of its users.

use std::{
    io,
    path::{Path, PathBuf},
};

use mesh_bus::{BusConfig, Credentials};

/// Address, credentials and trust of a bus, as services are configured with it.
#[derive(Clone, Debug)]
pub struct Bus {
    /// One or several server addresses, separated by commas.
    pub url: String,
    /// The files with `user:password`; absent = no authentication.
    pub credentials: Option<BusCredentials>,
    /// The file with the certificates (PEM) of the authority to trust; absent = without TLS.
    pub tls_ca: Option<PathBuf>,
}

/// The files with `user:password` of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusCredentials {
    /// A folder with a file per user, named after the user.
    Each(PathBuf),
    /// One file for all users, for a bus that is not the mesh's own.
    Shared(PathBuf),
}

impl BusCredentials {
    /// The file of a user.
    pub fn of(&self, user: &str) -> PathBuf {
        match self {
            Self::Each(folder) => folder.join(user),
            Self::Shared(file) => file.clone(),
        }
    }
}

impl Bus {
    /// The file of a user; `None` without authentication.
    pub fn credentials_of(&self, user: &str) -> Option<PathBuf> {
        self.credentials.as_ref().map(|credentials| credentials.of(user))
    }

    /// The connection settings of a user; `prefix` is the first token of the subjects.
    ///
    /// # Errors
    /// The file of the user's credentials cannot be read.
    pub fn config(&self, user: &str, prefix: &str) -> io::Result<BusConfig> {
        Ok(BusConfig {
            url: self.url.clone(),
            credentials: self.credentials_of(user).map(|file| Credentials::read(&file)).transpose()?,
            prefix: prefix.to_owned(),
            name: user.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tls_ca: self.tls_ca.clone(),
        })
    }

    /// The environment variables of a service that connects as this user.
    pub fn variables(&self, user: &str) -> Vec<(String, String)> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut variables = vec![("MESH_BUS_URL".to_owned(), self.url.clone())];
        if let Some(file) = self.credentials_of(user) {
            variables.push(("MESH_BUS_CREDENTIALS".to_owned(), path(&file)));
        }
        if let Some(file) = &self.tls_ca {
            variables.push(("MESH_BUS_TLS_CA".to_owned(), path(file)));
        }
        variables
    }
}
