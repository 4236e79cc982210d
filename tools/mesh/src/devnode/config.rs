//! Configuration of the development node, from environment variables; the table is in the README.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use mesh_demo::Plan;
use mesh_devnode::{Checks, Limits};
use mesh_transaction::ALGORITHM;

use crate::failure::Failure;

/// The variable that names the database.
pub(crate) const DATABASE_URL: &str = "MESH_DATABASE_URL";
/// The variable with the plan of the demo network, as JSON, when the database holds one.
pub(crate) const DEMO_PLAN: &str = "MESH_DEMO_PLAN";
/// The variable that names the file in which the demo network keeps its state.
pub(crate) const DEMO_STATE: &str = "MESH_DEMO_STATE";
/// The variable with the address of the RPC.
pub(super) const LISTEN: &str = "MESH_DEVNODE_LISTEN";
/// The variable that names the file of the blocks.
pub(super) const FILE: &str = "MESH_DEVNODE_FILE";

const BLOCK_PERIOD_MS: u64 = 1000;

/// See the README's table.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) database_url: String,
    /// The plan of the demo network to continue, if there is one, and its state file.
    pub(super) demo: Option<(Plan, PathBuf)>,
    pub(super) block_period: Duration,
    pub(super) listen: SocketAddr,
    pub(super) file: PathBuf,
    pub(super) algorithm: String,
    pub(super) pow_prefix: String,
    pub(super) checks: Checks,
    pub(super) limits: Limits,
    pub(super) check_delay: Duration,
    pub(super) broadcasts: Option<PathBuf>,
    pub(super) catching_up: bool,
}

impl Config {
    /// Reads the environment.
    pub(super) fn read() -> Result<Self, Failure> {
        Self::from(|name| std::env::var(name).ok())
    }

    /// Reads these variables, and from the environment those that are not among them.
    pub(super) fn with_variables(variables: &[(String, String)]) -> Result<Self, Failure> {
        let value_of =
            |name: &str| variables.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        Self::from(|name| value_of(name).or_else(|| std::env::var(name).ok()))
    }

    /// Parses variables and reports all mistakes together.
    fn from(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut parser = VariableParser { variable: &variable, mistakes: Vec::new() };
        let usual = Limits::default();
        let limits = Limits {
            mempool_txs: parser.parsed("MESH_DEVNODE_MEMPOOL_TXS", usual.mempool_txs),
            mempool_bytes: parser.parsed("MESH_DEVNODE_MEMPOOL_BYTES", usual.mempool_bytes),
            cache: parser.parsed("MESH_DEVNODE_CACHE", usual.cache),
            keep_refused: parser.flag("MESH_DEVNODE_KEEP_REFUSED"),
            commit_wait: parser.milliseconds("MESH_DEVNODE_COMMIT_WAIT_MS", usual.commit_wait),
            commits: parser.parsed("MESH_DEVNODE_COMMITS", usual.commits),
            ..usual
        };
        let checks = match variable("MESH_DEVNODE_CHECKS").as_deref() {
            None | Some("all") => Checks::All,
            Some("none") => Checks::None,
            Some(_) => parser.mistake("MESH_DEVNODE_CHECKS must be all or none", Checks::All),
        };
        let demo = match (variable(DEMO_PLAN), variable(DEMO_STATE)) {
            (Some(plan), Some(state)) => match serde_json::from_str(&plan) {
                Ok(plan) => Some((plan, PathBuf::from(state))),
                Err(error) => parser.mistake(&format!("{DEMO_PLAN} cannot be read ({error})"), None),
            },
            _ => None,
        };
        let config = Self {
            database_url: parser.required(DATABASE_URL),
            demo,
            block_period: parser
                .milliseconds("MESH_DEVNODE_BLOCK_MS", Duration::from_millis(BLOCK_PERIOD_MS)),
            listen: parser.parsed(LISTEN, SocketAddr::from(([127, 0, 0, 1], 0))),
            file: parser.required(FILE).into(),
            algorithm: variable("MESH_RELAY_SIGNATURE_ALGO").unwrap_or_else(|| ALGORITHM.to_owned()),
            pow_prefix: variable("MESH_POW_PREFIX").unwrap_or_default(),
            checks,
            limits,
            check_delay: parser.milliseconds("MESH_DEVNODE_CHECK_DELAY_MS", Duration::ZERO),
            broadcasts: variable("MESH_DEVNODE_BROADCASTS").map(PathBuf::from),
            catching_up: parser.flag("MESH_DEVNODE_CATCHING_UP"),
        };
        match parser.mistakes.is_empty() {
            true => Ok(config),
            false => Err(Failure::configuration(format!(
                "{}; let `mesh up` start the development node",
                parser.mistakes.join("; ")
            ))),
        }
    }
}

/// The variables, and the mistakes found in them so far.
struct VariableParser<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    mistakes: Vec<String>,
}

impl VariableParser<'_> {
    fn required(&mut self, name: &str) -> String {
        (self.variable)(name).unwrap_or_else(|| self.mistake(&format!("{name} is not set"), String::new()))
    }

    fn parsed<T: FromStr>(&mut self, name: &str, usual: T) -> T {
        match (self.variable)(name).map(|value| value.parse()) {
            None => usual,
            Some(Ok(value)) => value,
            Some(Err(_)) => self.mistake(&format!("{name} cannot be read"), usual),
        }
    }

    fn milliseconds(&mut self, name: &str, usual: Duration) -> Duration {
        let milliseconds = u64::try_from(usual.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.parsed(name, milliseconds))
    }

    fn flag(&mut self, name: &str) -> bool {
        match (self.variable)(name).as_deref() {
            None | Some("0" | "false") => false,
            Some("1" | "true") => true,
            Some(_) => self.mistake(&format!("{name} must be 0 or 1"), false),
        }
    }

    fn mistake<T>(&mut self, what: &str, usual: T) -> T {
        self.mistakes.push(what.to_owned());
        usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Config, Failure> {
        let needed = [(DATABASE_URL, "postgres://"), (FILE, "blocks")];
        let all: Vec<_> = needed.iter().chain(variables).copied().collect();
        let find =
            |name: &str| all.iter().rfind(|(given, _)| *given == name).map(|(_, value)| (*value).to_owned());
        Config::from(find)
    }

    #[test]
    fn what_is_not_given_is_usual() {
        let config =
            read(&[("MESH_DEVNODE_CHECKS", "none"), ("MESH_DEVNODE_CACHE", "7"), ("MESH_POW_PREFIX", "")])
                .unwrap();
        assert_eq!(config.limits, Limits { cache: 7, ..Limits::default() });
        assert_eq!((config.checks, config.block_period), (Checks::None, Duration::from_secs(1)));
        assert!(config.demo.is_none() && config.listen.ip().is_loopback() && config.pow_prefix.is_empty());
    }

    #[test]
    fn all_mistakes_are_reported_together() {
        let wrong = [
            ("MESH_DEVNODE_CHECKS", "some"),
            ("MESH_DEVNODE_MEMPOOL_TXS", "-1"),
            ("MESH_DEVNODE_KEEP_REFUSED", "maybe"),
            (LISTEN, "here"),
            (FILE, ""),
        ];
        let failure = read(&wrong).unwrap_err();
        assert_eq!(failure.code, 64);
        let message = failure.to_string();
        assert!(wrong.iter().all(|(name, _)| message.contains(name)), "{message}");
    }
}
