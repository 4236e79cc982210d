//! Where the bus is and how each of its users is let in.

use std::{
    io,
    path::{Path, PathBuf},
};

use mesh_bus::{BusConfig, Credentials};

/// A bus as services are told of it.
#[derive(Clone, Debug)]
pub struct Bus {
    /// One or several server addresses, separated by commas.
    pub url: String,
    /// The files with `user:password`; absent = it lets everybody in.
    pub credentials: Option<BusCredentials>,
    /// The file with the certificates (PEM) by which it proves itself; absent = without TLS.
    pub tls_ca: Option<PathBuf>,
}

/// The files with `user:password` of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusCredentials {
    /// A folder in which every user has a file of its name.
    Each(PathBuf),
    /// A file for everybody: what a bus that is not ours may want.
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
    /// The file of a user, unless the bus lets everybody in.
    pub fn credentials_of(&self, user: &str) -> Option<PathBuf> {
        self.credentials.as_ref().map(|credentials| credentials.of(user))
    }

    /// How this user connects; `prefix` is the first token of the subjects.
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

    /// What a service is told, as this user.
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
