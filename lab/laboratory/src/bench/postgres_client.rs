//! Runs client programs of PostgreSQL, psql and pgbench, against the database of a private mesh.

use std::{
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use mesh::failure::{Failure, cannot};
use tempfile::NamedTempFile;

use super::{
    cost::{self, MeasuredProcess},
    meter::{Meter, Round},
};
use crate::private::{DatabaseParts, Servers};

/// Name of the processor time of a client that reads.
pub(super) const READER: &str = "reader";

/// The setting by which a statement is planned once per connection.
pub(super) const PLANNED_ONCE: &str = "-c plan_cache_mode=force_generic_plan";

/// A script of pgbench: a statement with a random number `:n`. `parameters` are expressions over `:n` for the
/// statement's `$1`, `$2`, ...
pub(super) fn script(
    statement: &str,
    parameters: &[&str],
    numbers: RangeInclusive<i64>,
) -> Result<NamedTempFile, Failure> {
    let lines = statement.lines().filter(|line| !line.trim_start().starts_with("--"));
    let mut statement = lines.collect::<Vec<_>>().join("\n");
    for (index, parameter) in parameters.iter().enumerate().rev() {
        statement = statement.replace(&format!("${}", index + 1), parameter);
    }
    let (least, greatest) = numbers.into_inner();
    let written = NamedTempFile::new().and_then(|file| {
        fs::write(file.path(), format!("\\set n random({least}, {greatest})\n{statement};\n"))?;
        Ok(file)
    });
    written.map_err(|error| cannot("write a script", &error))
}

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

    /// Runs this program, pgbench, with a script for a while, over this number of connections with prepared
    /// statements and these settings.
    ///
    /// # Errors
    /// When it cannot run, or none of its transactions succeeds.
    pub(super) fn bench(
        &self,
        script: &Path,
        (connections, settings): (u64, &str),
        server: &[MeasuredProcess],
        length: Duration,
    ) -> Result<Round, String> {
        let mut command = self.command();
        command.env("PGOPTIONS", settings);
        command.args(["-n", "-M", "prepared", "-j", "2", "-c"]).arg(connections.to_string());
        command.arg("-T").arg(length.as_secs().max(1).to_string()).arg("-f").arg(script);
        let (meter, before_us) = (Meter::start(server), cost::ended_children_cpu_us());
        let output = command.output().map_err(|error| format!("cannot run pgbench: {error}"))?;
        let reader_us = cost::ended_children_cpu_us().zip(before_us).map(|(after, before)| after - before);
        let mut spent = meter.stop(reader_us.unwrap_or_default());
        let said = String::from_utf8_lossy(&output.stdout);
        let (Some(rate), Some(transactions)) = (number_behind(&said, "tps = "), transactions(&said)) else {
            return Err(format!("pgbench failed: {} {said}", String::from_utf8_lossy(&output.stderr)));
        };
        // Without the time in which it connects.
        spent.seconds = transactions / rate;
        let own_us = reader_us.map(|us| (READER, us)).into_iter().collect();
        Ok(Round { amount: transactions as u64, spent, own_us, ..Round::default() })
    }
}

fn transactions(said: &str) -> Option<f64> {
    number_behind(said, "number of transactions actually processed: ").filter(|number| *number > 0.0)
}

fn number_behind(said: &str, name: &str) -> Option<f64> {
    let rest = said.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split(|sign: char| !sign.is_ascii_digit() && sign != '.').next()?.parse().ok()
}

/// Whether a program can be run.
pub(super) fn runs(mut program: Command) -> bool {
    program.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    program.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_asks_a_statement_with_expressions_for_its_parameters() {
        let script = |statement, parameters: &[&str]| {
            fs::read_to_string(script(statement, parameters, 3..=7).unwrap()).unwrap()
        };
        let one = script(crate::bench::withdrawals::STATEMENT, &[":n"]);
        assert!(one.starts_with("\\set n random(3, 7)\n"), "{one}");
        assert!(one.contains("WHERE id = :n ORDER BY"), "{one}");
        assert!(!one.contains('$') && !one.contains("--"), "{one}");
        assert_eq!(one.matches(';').count(), 1);
        let expressions: Vec<String> = (1..=10).map(|number| format!("e{number}")).collect();
        let ten = script("SELECT $1, $10", &expressions.iter().map(|text| &**text).collect::<Vec<_>>());
        assert!(ten.ends_with("SELECT e1, e10;\n"), "{ten}");
    }

    #[test]
    fn the_output_of_pgbench_is_parsed() {
        let said = "latency average = 0.2 ms\nnumber of transactions actually processed: 300\n\
            tps = 61234.567890 (without initial connection time)\n";
        assert_eq!(number_behind(said, "tps = "), Some(61234.56789));
        assert_eq!(transactions(said), Some(300.0));
        assert_eq!(transactions("number of transactions actually processed: 0"), None);
        assert_eq!(number_behind("", "tps = "), None);
    }
}
