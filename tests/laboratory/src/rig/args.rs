//! The command line of `mesh rig`: a subcommand for each row of the table of drills.

use std::{path::PathBuf, time::Duration};

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand,
    builder::{PossibleValue, PossibleValuesParser},
    error::ErrorKind,
    value_parser,
};
use mesh_launcher::services::SERVICES;

use super::{
    DRILLS,
    engine::{Drill, Play, Playing},
    truth,
};

/// Options of `rig`.
#[derive(Args)]
#[command(arg_required_else_help = false, subcommand_value_name = "DRILL")]
pub(crate) struct RigArgs {
    /// The drill to run
    #[command(subcommand)]
    pub(crate) drill: Options,
}

/// An option with a number.
pub(super) struct Number {
    pub(super) name: &'static str,
    pub(super) value: &'static str,
    pub(super) help: &'static str,
    pub(super) default: Option<&'static str>,
    /// The least and the greatest value.
    pub(super) range: (u64, u64),
}

impl Number {
    const fn new(
        (name, value, help): (&'static str, &'static str, &'static str),
        default: &'static str,
        range: (u64, u64),
    ) -> Self {
        Self { name, value, help, default: Some(default), range }
    }
}

const RATE: (&str, &str, &str) = ("rate", "R", "Reads a second, sent independently of earlier answers");
const MINUTES: (&str, &str, &str) = ("minutes", "N", "Length of the drill, minutes");
/// Rates of reads; at an edge with a limit for each address the rate is below it, and the drill of answers has a
/// request of each class.
pub(super) const READ_RATE: Number = Number::new(RATE, "1000", (1, 20_000));
pub(super) const POLITE_RATE: Number = Number::new(RATE, "90", (10, 95));
pub(super) const CHECKED_RATE: Number = Number::new(RATE, "300", (16, 20_000));
pub(super) const LONG: Number = Number::new(MINUTES, "20", (1, 600));
pub(super) const MINUTES_5: Number = Number::new(MINUTES, "5", (1, 600));
pub(super) const SLACK: Number = Number::new(
    (
        "slack",
        "TIMES",
        "Factor for the time limits of all bars, for builds without optimisation on a busy machine",
    ),
    "1",
    (1, 10),
);
pub(super) const ROUNDS: Number =
    Number::new(("rounds", "N", "How often every service is restarted"), "2", (1, 100));
pub(super) const DOWNLOADS: Number =
    Number::new(("downloads", "N", "Downloads at the same time"), "50", (5, 1000));
pub(super) const SUBMISSIONS: Number =
    Number::new(("submissions", "S", "Submissions a second, about"), "20", (1, 200));
pub(super) const WATCHERS: Number =
    Number::new(("watchers", "N", "Clients that watch, each with an event stream"), "200", (5, 10_000));
pub(super) const KILLS: Number = Number {
    name: "kills",
    value: "N",
    help: "Number of killed processes [default: 1000, or 50 with --short]",
    default: None,
    range: (1, 100_000),
};
const RUNS: Number =
    Number::new(("runs", "N", "Number of runs, each with the next seed"), "1", (1, u32::MAX as u64));
const SEEDS: Number =
    Number::new(("runs", "N", "Number of consecutive seeds"), "1000000", (1, 1_000_000_000_000));

/// A drill with the options that were given.
pub(crate) struct Options {
    pub(super) drill: &'static Drill,
    matches: ArgMatches,
}

/// Options of every drill.
pub(crate) struct RunArgs {
    pub(crate) seed: Option<u64>,
    pub(crate) runs: u64,
    pub(crate) short: bool,
    pub(crate) json: Option<PathBuf>,
}

/// Options of a drill on a private mesh.
pub(crate) struct PlayArgs {
    pub(crate) run: RunArgs,
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

    /// The value for the long form or for the short one.
    pub(crate) fn either<T>(&self, long: T, short: T) -> T {
        if self.run.short { short } else { long }
    }
}

/// The traffic of a drill of the whole mesh.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrafficArgs {
    pub(crate) rate: u32,
    pub(crate) downloads: u32,
    pub(crate) submissions: u32,
    pub(crate) watchers: u32,
}

/// Options of `rig truth`.
pub(crate) struct TruthArgs {
    pub(crate) play: PlayArgs,
    pub(crate) minutes: u32,
    pub(crate) rate: u32,
}

impl Options {
    /// The options of every drill.
    pub(super) fn play(&self) -> PlayArgs {
        let seed = self.matches.get_one("seed").copied();
        let json = self.matches.get_one("json").cloned();
        let short = self.matches.try_get_one("short").ok().flatten().copied().unwrap_or_default();
        let run = RunArgs { seed, runs: self.matches.get_one("runs").copied().unwrap_or(1), short, json };
        PlayArgs { run, slack: self.given("slack").unwrap_or(1) }
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

    pub(super) fn traffic(&self) -> TrafficArgs {
        let [rate, downloads, submissions, watchers] =
            ["rate", "downloads", "submissions", "watchers"].map(|name| self.number(name));
        TrafficArgs { rate, downloads, submissions, watchers }
    }

    pub(super) async fn truth(&self) -> Result<(), mesh::failure::Failure> {
        let (minutes, rate) = (self.number("minutes"), self.number("rate"));
        truth::drill(&TruthArgs { play: self.play(), minutes, rate }).await
    }
}

impl Drill {
    fn command(&self) -> Command {
        let (is_sweep, phases) = match &self.play {
            Play::Seeds(_) => (true, None),
            Play::Phases(Playing { phases, .. }) => (false, Some(*phases)),
            Play::Whole { .. } | Play::Own(_) => (false, None),
        };
        let first = "Source of every random choice; the same one repeats a run [default: a new one, which is printed]";
        let seed = Arg::new("seed").long("seed").value_name("N").value_parser(value_parser!(u64)).help(first);
        let mut command = Command::new(self.name).about(self.about).arg(seed);
        command = command.arg(number(if is_sweep { &SEEDS } else { &RUNS }));
        if !is_sweep {
            let short = Arg::new("short").long("short").action(ArgAction::SetTrue);
            command = command.arg(short.help("Run a short form with less load, as in CI"));
        }
        let json = Arg::new("json").long("json").value_name("FILE").value_parser(value_parser!(PathBuf));
        command = command.arg(json.help("Also write the figures to this file"));
        if let Some(phases) = phases {
            let names = phases.iter().map(|phase| PossibleValue::new(phase.name).help(phase.about));
            command = command.arg(list("phase", names).help("Only this phase, repeatable [default: all]"));
        }
        if self.options.iter().any(|option| option.name == ROUNDS.name) {
            let names = SERVICES.iter().map(|service| PossibleValue::new(service.name));
            let services = list("service", names).help("Only this service, repeatable [default: all]");
            command = command.arg(services);
        }
        command.args(self.options.iter().map(number))
    }
}

fn number(option: &Number) -> Arg {
    let (least, most) = option.range;
    let arg = Arg::new(option.name).long(option.name).value_name(option.value).help(option.help);
    let arg = arg.value_parser(value_parser!(u64).range(least..=most));
    match option.default {
        Some(default) => arg.default_value(default),
        None => arg,
    }
}

fn list(name: &'static str, values: impl Iterator<Item = PossibleValue>) -> Arg {
    let arg = Arg::new(name).long(name).value_name("NAME").action(ArgAction::Append);
    arg.value_parser(PossibleValuesParser::new(values))
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
