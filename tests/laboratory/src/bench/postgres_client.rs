//! Runs client programs of PostgreSQL, psql and pgbench, against the database of a private mesh.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use mesh::failure::Failure;

use crate::private::{DatabaseParts, Servers};

/// A program that can be run.
#[derive(Clone, Debug)]
pub(super) struct PostgresClient {
    program: PathBuf,
    /// The variables that the programs read the connection from. The password must not appear in the list of
    /// processes.
    env: [(&'static str, String); 5],
}

impl PostgresClient {
    /// Finds a program in PostgreSQL's folder or on the path; `None` where it cannot be run.
    ///
    /// # Errors
    /// When the address of the database cannot be read.
    pub(super) fn find(servers: &Servers, name: &str) -> Result<Option<Self>, Failure> {
        let beside = servers.postgres.with_file_name(name);
        let program = if beside.is_file() { beside } else { PathBuf::from(name) };
        if !runs(Command::new(&program)) {
            return Ok(None);
        }
        let DatabaseParts { host, port, user, password, name } = servers.parts()?;
        let env = [
            ("PGHOST", host),
            ("PGPORT", port),
            ("PGUSER", user),
            ("PGPASSWORD", password),
            ("PGDATABASE", name),
        ];
        Ok(Some(Self { program, env }))
    }

    /// The command that runs it, connected to the database.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.env.clone()).env("PGTZ", "UTC").stdin(Stdio::null());
        command
    }
}

/// Whether a program can be run.
pub(super) fn runs(mut program: Command) -> bool {
    program.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    program.status().is_ok_and(|status| status.success())
}
