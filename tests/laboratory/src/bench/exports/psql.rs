//! Runs psql with statements that copy rows out.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use mesh::failure::Failure;

use crate::private::{DatabaseParts, Servers};

/// How to run psql against the database of a private mesh.
#[derive(Clone, Debug)]
pub(super) struct Psql {
    program: PathBuf,
    host: String,
    port: String,
    user: String,
    password: String,
    name: String,
}

/// Length and checksum of the output of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) bytes: u64,
    pub(super) crc32: u32,
}

impl Psql {
    /// Finds the program in PostgreSQL's folder or on the path.
    pub(super) fn find(servers: &Servers) -> Result<Self, Failure> {
        let beside = servers.postgres.with_file_name("psql");
        let program = if beside.is_file() { beside } else { PathBuf::from("psql") };
        let DatabaseParts { host, port, user, password, name } = servers.parts()?;
        Ok(Self { program, host, port, user, password, name })
    }

    /// Whether the program can be run.
    pub(super) fn runs(&self) -> bool {
        runs(&self.program)
    }

    /// The command that runs these statements one after the other.
    fn command(&self, statements: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]);
        command.args(["-h", &self.host, "-p", &self.port, "-U", &self.user, "-d", &self.name]);
        for statement in statements {
            command.args(["-c", *statement]);
        }
        // The password must not appear in the list of processes.
        command.env("PGPASSWORD", &self.password).env("PGTZ", "UTC");
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        command
    }

    /// Runs the statements and reads their whole output.
    pub(super) fn print(&self, statements: &[&str]) -> Result<Printed, String> {
        let mut psql = self.command(statements).stdout(Stdio::piped()).spawn().map_err(error_text)?;
        let (mut printed, mut crc32) = (0, crc32fast::Hasher::new());
        if let Some(mut output) = psql.stdout.take() {
            let mut piece = vec![0; 256 << 10];
            loop {
                let read = output.read(&mut piece).map_err(error_text)?;
                if read == 0 {
                    break;
                }
                printed += read as u64;
                crc32.update(&piece[..read]);
            }
        }
        succeeded(psql, "psql")?;
        Ok(Printed { bytes: printed, crc32: crc32.finalize() })
    }

    /// Runs the statements and pipes their output through `gzip -1`, discarding the result.
    pub(super) fn gzip(&self, statements: &[&str]) -> Result<(), String> {
        let mut psql = self.command(statements).stdout(Stdio::piped()).spawn().map_err(error_text)?;
        let output = psql.stdout.take().map_or_else(Stdio::null, Stdio::from);
        let gzip = Command::new("gzip").arg("-1").stdin(output).stdout(Stdio::null()).spawn();
        let gzip = gzip.map_err(error_text);
        succeeded(psql, "psql")?;
        succeeded(gzip?, "gzip")
    }
}

/// Whether gzip can be run.
pub(super) fn gzip_runs() -> bool {
    runs(Path::new("gzip"))
}

fn runs(program: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn succeeded(mut process: Child, name: &str) -> Result<(), String> {
    let status = process.wait().map_err(error_text)?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
}

fn error_text(error: impl std::fmt::Display) -> String {
    format!("cannot run psql: {error}")
}
