//! The command line of `mesh rig`: a subcommand for each row of the table of drills.

use std::{path::PathBuf, time::Duration};

use clap::{
    Arg, ArgAction, ArgMatches, Command, FromArgMatches, Subcommand,
    builder::{PossibleValue, PossibleValuesParser},
    error::ErrorKind,
    value_parser,
};

use super::{
    DRILLS,
    engine::{Drill, Play, Playing},
};

pub(super) struct Number {
    name: &'static str,
    value: &'static str,
    help: &'static str,
    /// Empty: it has none.
    default: &'static str,
    /// The least and the greatest value.
    range: (u64, u64),
}

const fn number(
    name: &'static str,
    value: &'static str,
    help: &'static str,
    default: &'static str,
    range: (u64, u64),
) -> Number {
    Number { name, value, help, default, range }
}

const RATE: &str = "Reads a second, sent independently of earlier answers";
const LENGTH: &str = "Length of the drill, minutes";
pub(super) const READ_RATE: Number = number("rate", "R", RATE, "1000", (1, 20_000));
/// Below the edge's limit of an address.
pub(super) const POLITE_RATE: Number = number("rate", "R", RATE, "90", (10, 95));
pub(super) const CHECKED_RATE: Number = number("rate", "R", RATE, "300", (16, 20_000));
pub(super) const MINUTES_20: Number = number("minutes", "N", LENGTH, "20", (1, 600));
pub(super) const MINUTES_5: Number = number("minutes", "N", LENGTH, "5", (1, 600));
const SLACKNESS: &str =
    "Factor for the time limits of all bars, for builds without optimisation on a busy machine";
pub(super) const SLACK: Number = number("slack", "TIMES", SLACKNESS, "1", (1, 10));
pub(super) const ROUNDS: Number =
    number("rounds", "N", "How often every service is restarted", "2", (1, 100));
pub(super) const DOWNLOADS: Number = number("downloads", "N", "Downloads at the same time", "50", (5, 1000));
pub(super) const SUBMISSIONS: Number =
    number("submissions", "S", "Submissions a second, about", "20", (1, 200));
pub(super) const WATCHERS: Number =
    number("watchers", "N", "Clients that watch, each with an event stream", "200", (5, 10_000));
pub(super) const WEB_SOCKETS: Number =
    number("web-sockets", "N", "Clients that watch, each with a WebSocket", "40", (0, 10_000));
pub(super) const KILLS: Number =
    number("kills", "N", "Number of killed processes [default: 1000, or 50 with --short]", "", (1, 100_000));
const RUNS: Number =
    number("runs", "N", "Number of runs, each with the next seed", "1", (1, u32::MAX as u64));
const SEEDS: Number = number("runs", "N", "Number of consecutive seeds", "1000000", (1, 1_000_000_000_000));

/// A drill with the options that were given.
pub(crate) struct Options {
    pub(super) drill: &'static Drill,
    matches: ArgMatches,
}

/// Options of every drill.
pub(crate) struct PlayArgs {
    pub(crate) seed: Option<u64>,
    pub(crate) runs: u64,
    pub(crate) short: bool,
    pub(crate) json: Option<PathBuf>,
    pub(crate) slack: u32,
}

impl PlayArgs {
    /// A time limit times the slack.
    pub(crate) fn bound(&self, time: Duration) -> Duration {
        time * self.slack
    }

    /// A lower bound of a share, divided by the slack.
    pub(crate) fn share(&self, share: f64) -> f64 {
        share / f64::from(self.slack)
    }

    /// The value for the long form, the first, or for the short one.
    pub(crate) fn either<T>(&self, [long, short]: [T; 2]) -> T {
        if self.short { short } else { long }
    }
}

impl Options {
    /// The options of every drill.
    pub(super) fn play(&self) -> PlayArgs {
        let seed = self.matches.get_one("seed").copied();
        let json = self.matches.get_one("json").cloned();
        let short = self.matches.try_get_one("short").ok().flatten().copied().unwrap_or_default();
        let runs = self.matches.get_one("runs").copied().unwrap_or(1);
        PlayArgs { seed, runs, short, json, slack: self.given("slack").unwrap_or(1) }
    }

    /// The value of an option that has one.
    pub(super) fn number(&self, name: &str) -> u32 {
        self.given(name).unwrap_or_default()
    }

    /// The value of an option, when the drill has it and it was given.
    pub(super) fn given(&self, name: &str) -> Option<u32> {
        let number = self.matches.try_get_one::<u64>(name).ok().flatten();
        number.and_then(|number| u32::try_from(*number).ok())
    }

    /// The values of an option with a list of names; none stands for all.
    pub(super) fn names(&self, name: &str) -> Vec<&str> {
        self.matches.get_many::<String>(name).unwrap_or_default().map(String::as_str).collect()
    }
}

impl Drill {
    fn command(&self) -> Command {
        let (is_sweep, phases) = match &self.play {
            Play::Seeds(_) => (true, None),
            Play::Phases(Playing { phases, .. }) => (false, Some(*phases)),
            Play::Own(_) => (false, None),
        };
        let first = "Source of every random choice; the same one repeats a run \
            [default: a new one, which is printed]";
        let seed = Arg::new("seed").long("seed").value_name("N").value_parser(value_parser!(u64)).help(first);
        let mut command = Command::new(self.name).about(self.about).arg(seed);
        command = command.arg(if is_sweep { SEEDS.arg() } else { RUNS.arg() });
        if !is_sweep {
            let short = Arg::new("short").long("short").action(ArgAction::SetTrue);
            command = command.arg(short.help("Run a short form with less load, as in CI"));
        }
        let json = Arg::new("json").long("json").value_name("FILE").value_parser(value_parser!(PathBuf));
        command = command.arg(json.help("Also write the figures to this file"));
        if let Some(phases) = phases {
            let names = phases.iter().map(|phase| PossibleValue::new(phase.name).help(phase.about));
            let phase = Arg::new("phase").long("phase").value_name("NAME").action(ArgAction::Append);
            let phase = phase.value_parser(PossibleValuesParser::new(names));
            command = command.arg(phase.help("Only this phase, repeatable [default: all]"));
        }
        command.args(self.options.iter().map(Number::arg))
    }
}

impl Number {
    fn arg(&self) -> Arg {
        let (least, most) = self.range;
        let arg = Arg::new(self.name).long(self.name).value_name(self.value).help(self.help);
        let arg = arg.value_parser(value_parser!(u64).range(least..=most));
        if self.default.is_empty() { arg } else { arg.default_value(self.default) }
    }
}

impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let chosen = matches.subcommand().and_then(|(name, matches)| {
            let drill = DRILLS.iter().find(|drill| drill.name == name)?;
            Some(Self { drill, matches: matches.clone() })
        });
        chosen.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Options {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(DRILLS.iter().map(Drill::command))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        DRILLS.iter().any(|drill| drill.name == name)
    }
}
