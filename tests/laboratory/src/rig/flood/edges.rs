//! Additional edges to attack: one with a rate limit, and one with few file descriptors.

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt as _};

use mesh::{
    failure::{Failure, cannot},
    programs,
};

use super::fixture::Fixture;

/// Rate limit of one address at the edge with a rate limit: requests a second, and burst (contract section
/// 7).
pub(super) const RATE_PER_S: u32 = 100;
pub(super) const RATE_BURST: u32 = 500;
/// File descriptors of the edge with few.
pub(super) const FEW_FILES: u32 = 256;

impl Fixture<'_> {
    /// Starts an edge with a rate limit per address.
    pub(super) async fn edge_with_rate(&self) -> Result<SocketAddr, Failure> {
        let env = [("MESH_EDGE_RATE_PER_S", RATE_PER_S), ("MESH_EDGE_RATE_BURST", RATE_BURST)];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_string())).to_vec();
        self.mesh.start_edge_with(&self.servers, "edge-rate", env, None).await
    }

    /// Starts an edge with [`FEW_FILES`] file descriptors.
    pub(super) async fn edge_with_few_files(&self) -> Result<SocketAddr, Failure> {
        let edge = programs::beside("edge")?;
        let folder = self.mesh.home.root().join("few-files");
        let program = folder.join("edge");
        let write = || {
            fs::create_dir_all(&folder)?;
            fs::write(&program, format!("#!/bin/sh\nulimit -n {FEW_FILES}\nexec {edge:?}\n"))?;
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
        };
        write().map_err(|error| cannot("write a program", &error))?;
        self.mesh.start_edge_with(&self.servers, "edge-files", Vec::new(), Some(folder)).await
    }
}
