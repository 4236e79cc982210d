//! Runs psql with statements that copy rows out.

use std::{
    io::Read as _,
    process::{Child, Command, Stdio},
};

use super::super::postgres_client::PostgresClient;

/// Length and checksum of some output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) bytes: u64,
    pub(super) crc32: u32,
}

/// The command that runs statements in sequence.
fn command(psql: &PostgresClient, statements: &[&str]) -> Command {
    let mut command = psql.command();
    command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]).stdout(Stdio::piped());
    for statement in statements {
        command.args(["-c", *statement]);
    }
    command
}

/// Runs a statement and reads its whole output.
///
/// # Errors
/// When psql fails.
pub(super) fn print(psql: &PostgresClient, statement: &str) -> Result<Printed, String> {
    let mut psql = command(psql, &[statement]).spawn().map_err(error_text)?;
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

/// Runs statements and pipes their output through `gzip -1`, discarding the result.
///
/// # Errors
/// When one of both fails.
pub(super) fn gzip(psql: &PostgresClient, statements: &[&str]) -> Result<(), String> {
    let mut psql = command(psql, statements).spawn().map_err(error_text)?;
    let output = psql.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let gzip = Command::new("gzip").arg("-1").stdin(output).stdout(Stdio::null()).spawn();
    let gzip = gzip.map_err(error_text);
    succeeded(psql, "psql")?;
    succeeded(gzip?, "gzip")
}

fn succeeded(mut process: Child, name: &str) -> Result<(), String> {
    let status = process.wait().map_err(error_text)?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
}

fn error_text(error: impl std::fmt::Display) -> String {
    format!("cannot run psql: {error}")
}
