//! Runs client programs of PostgreSQL, psql and pgbench, against the database of a private mesh.

use std::{
    fs,
    io::Read as _,
    ops::RangeInclusive,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use mesh::failure::{Failure, cannot};
use tempfile::NamedTempFile;

use super::{
    comparison::{REQUESTS, Side},
    cost::{self, MeasuredProcess},
    meter::Round,
};
use crate::private::Servers;

#[derive(Clone, Debug)]
pub(super) struct PostgresClient {
    program: PathBuf,
    /// The address of the database without the password, which must not appear in the list of processes.
    url: String,
    password: String,
}

/// How pgbench runs.
#[derive(Clone, Copy)]
pub(super) struct Bench {
    /// Number of its connections.
    pub(super) clients: u64,
    pub(super) settings: &'static str,
    pub(super) length: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) bytes: u64,
    pub(super) crc32: u32,
}

impl PostgresClient {
    /// Finds a program in PostgreSQL's folder or on the path.
    pub(super) fn find(servers: &Servers, name: &str) -> Result<Self, Failure> {
        let beside = servers.postgres.with_file_name(name);
        let program = if beside.is_file() { beside } else { PathBuf::from(name) };
        require(&program)?;
        let url = servers.database.url().rsplit_once('@').unwrap_or_default();
        let (user, password) = url.0.rsplit_once(':').unwrap_or_default();
        Ok(Self { program, url: format!("{user}@{}", url.1), password: password.to_owned() })
    }

    /// The same program for another database of the server.
    pub(super) fn in_database(&self, name: &str) -> Self {
        let server = self.url.rsplit_once('/').map_or(&*self.url, |(server, _)| server);
        Self { url: format!("{server}/{name}"), ..self.clone() }
    }

    /// The command that runs it, connected to the database.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(&self.url).env("PGPASSWORD", &self.password).env("PGTZ", "UTC");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// The command that runs statements in sequence by this program, psql.
    pub(super) fn statements(&self, statements: &[impl AsRef<str>]) -> Command {
        let mut command = self.command();
        command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]);
        for statement in statements {
            command.args(["-c", statement.as_ref()]);
        }
        command
    }

    /// A side that runs this program, pgbench, with a prepared statement that has a random number `:n`.
    pub(super) fn side<'a>(
        &self,
        name: &str,
        server: &[MeasuredProcess],
        bench: Bench,
        statement: &str,
        numbers: RangeInclusive<i64>,
    ) -> Result<Side<'a>, Failure> {
        let script = Arc::new(script(statement, numbers).map_err(|error| cannot("write a script", &error))?);
        let (pgbench, server) = (self.clone(), server.to_vec());
        Ok(Side::blocking(name, REQUESTS, move || pgbench.bench(&script, bench, &server)))
    }

    fn bench(
        &self,
        script: &NamedTempFile,
        bench: Bench,
        server: &[MeasuredProcess],
    ) -> Result<Round, String> {
        let mut command = self.command();
        command.env("PGOPTIONS", bench.settings);
        command.args(["-n", "-M", "prepared", "-j", "2", "-c"]).arg(bench.clients.to_string());
        command.arg("-T").arg(bench.length.as_secs().max(1).to_string()).arg("-f").arg(script.path());
        let mut seconds = f64::NAN;
        let round = Round::of(("reader", cost::children_us), server, || {
            let output = command.output().map_err(error_text)?;
            let text = String::from_utf8_lossy(&output.stdout);
            let rate = number_after(&text, "tps = ");
            let transactions = number_after(&text, "number of transactions actually processed: ");
            let (Some(rate), Some(transactions @ 1.0..)) = (rate, transactions) else {
                return Err(format!("pgbench failed: {} {text}", String::from_utf8_lossy(&output.stderr)));
            };
            seconds = transactions / rate;
            Ok(transactions as u64)
        });
        let mut round = round?;
        // Without the time in which it connects.
        round.spent.seconds = seconds;
        Ok(round)
    }

    /// Runs a statement by this program, psql, and reads its whole output.
    pub(super) fn print(&self, statement: &str) -> Result<Printed, String> {
        let mut psql = self.statements(&[statement]).spawn().map_err(error_text)?;
        let (mut bytes, mut crc32) = (0, crc32fast::Hasher::new());
        if let Some(mut output) = psql.stdout.take() {
            let mut piece = vec![0; 256 << 10];
            loop {
                let read = output.read(&mut piece).map_err(error_text)?;
                if read == 0 {
                    break;
                }
                bytes += read as u64;
                crc32.update(&piece[..read]);
            }
        }
        succeeded(psql)?;
        Ok(Printed { bytes, crc32: crc32.finalize() })
    }

    /// Runs statements by this program, psql, and pipes their output through `gzip -1`, discarding the result.
    pub(super) fn gzip(&self, statements: &[&str]) -> Result<(), String> {
        let mut psql = self.statements(statements).spawn().map_err(error_text)?;
        let output = psql.stdout.take().map_or_else(Stdio::null, Stdio::from);
        let gzip = Command::new("gzip").arg("-1").stdin(output).stdout(Stdio::null()).spawn();
        succeeded(psql)?;
        succeeded(gzip.map_err(error_text)?)
    }
}

/// A script of pgbench: a statement without comments, for a random number `:n`.
fn script(statement: &str, numbers: RangeInclusive<i64>) -> std::io::Result<NamedTempFile> {
    let lines = statement.lines().filter(|line| !line.trim_start().starts_with("--"));
    let statement = lines.collect::<Vec<_>>().join("\n");
    let ((least, greatest), file) = (numbers.into_inner(), NamedTempFile::new()?);
    fs::write(file.path(), format!("\\set n random({least}, {greatest})\n{statement};\n"))?;
    Ok(file)
}

fn succeeded(mut program: Child) -> Result<(), String> {
    let status = program.wait().map_err(error_text)?;
    if status.success() { Ok(()) } else { Err(format!("the program failed: {status}")) }
}

fn error_text(error: impl std::fmt::Display) -> String {
    format!("cannot run the program: {error}")
}

fn number_after(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split(|sign: char| !sign.is_ascii_digit() && sign != '.').next()?.parse().ok()
}

/// Checks that a program can be run.
pub(super) fn require(program: impl AsRef<std::ffi::OsStr>) -> Result<(), Failure> {
    let program = program.as_ref();
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let can_run = command.status().is_ok_and(|status| status.success());
    can_run.then_some(()).ok_or_else(|| Failure::missing(format!("there is no {}", program.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_a_statement_without_comments() {
        let file = script("-- a comment\nSELECT :n\n  -- another\nFROM t", 3..=7).unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        assert_eq!(text, "\\set n random(3, 7)\nSELECT :n\nFROM t;\n");
    }

    #[test]
    fn numbers_are_found_in_the_output_of_pgbench() {
        let text = "latency average = 0.2 ms\ntps = 61234.567890 (without initial connection time)\n";
        assert_eq!(number_after(text, "tps = "), Some(61234.56789));
        assert_eq!(number_after(text, "number of transactions actually processed: "), None);
    }
}
