//! The command line of `mesh rig`: each drill has its own options and its own list of phases.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum, builder::PossibleValuesParser};
use mesh_launcher::services::SERVICES;

/// Options of `rig`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = false, subcommand_value_name = "DRILL")]
pub(crate) struct RigArgs {
    /// The drill to run
    #[command(subcommand)]
    pub(crate) drill: Drill,
}

/// A drill.
#[derive(Debug, Subcommand)]
pub(crate) enum Drill {
    /// Kills replicas and servers under reads; reads must continue
    Reads(ReadsArgs),
    /// Kills workers and servers and damages segments under downloads; downloads must complete
    Kill(KillArgs),
    /// Attacks an edge under reads; reads must not fail or become slow
    Flood(FloodArgs),
    /// Kills the node and the relays under submissions; every transaction must have exactly one outcome
    Fates(RunArgs),
    /// Restarts every service in turn under reads, downloads and submissions; no request may fail
    Rolling(RollingArgs),
    /// Injects random faults; no client may receive a wrong answer
    Chaos(ChaosArgs),
    /// Compares every answer with the store at the answer's height while services and servers restart
    Truth(TruthArgs),
    /// Kills and freezes everything between a chain and the store; no row may be missing or duplicated
    Ingest(IngestArgs),
    /// Simulates replicas of ingest that store a chain under faults, one run a seed
    Order(SeedsArgs),
    /// Simulates download streams under all faults, one run a seed
    Streams(SeedsArgs),
    /// Tests the limits of watches: clients that never read, a full edge, a shutdown with thousands of watchers
    Watches(WatchesArgs),
}

/// Options of a drill on a private mesh.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Source of every random choice; the same one repeats a run [default: a new one, which is printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Number of runs, each with the next seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Run a short form with less load, as in CI
    #[arg(long)]
    pub(crate) short: bool,
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Options of a drill with phases on a private mesh.
#[derive(Debug, Args)]
pub(crate) struct PlayArgs {
    /// How it is run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Factor for the time limits of all bars, for builds without optimisation on a busy machine
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
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

/// Options of `rig reads`.
#[derive(Debug, Args)]
pub(crate) struct ReadsArgs {
    /// Options of the phases.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Only this phase, repeatable [default: all]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) phase: Vec<ReadsPhase>,
    /// Requests a second, sent independently of earlier answers
    #[arg(long, value_name = "R", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) rate: u32,
}

/// A phase of `rig reads`. The first and the last keep their places, the others run in an order chosen by the
/// seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadsPhase {
    /// No fault
    Steady,
    /// A replica is killed
    Kill,
    /// A replica is frozen and woken
    Freeze,
    /// The database is stopped and started
    Postgres,
    /// The bus is killed and restarted
    Nats,
    /// All replicas are replaced in turn
    Rolling,
    /// Clients disconnect before slow answers
    Abort,
    /// Services are started before their servers
    Order,
}

/// Options of `rig flood`.
#[derive(Debug, Args)]
pub(crate) struct FloodArgs {
    /// Options of the phases.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Only this phase, repeatable [default: all]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) phase: Vec<FloodPhase>,
    /// Requests a second of the regular clients
    #[arg(long, value_name = "R", default_value_t = 90, value_parser = clap::value_parser!(u32).range(10..=95))]
    pub(crate) rate: u32,
}

/// A phase of `rig flood`. The first and the last keep their places, the others run in an order chosen by the
/// seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FloodPhase {
    /// Connections that send half a head
    Head,
    /// Connections that send nothing
    Silent,
    /// Bodies sent at one byte a second
    Body,
    /// Clients that do not read a long answer
    Unread,
    /// HTTP/2 clients with a flow-control window of zero
    Window,
    /// Idle connections
    Idle,
    /// HTTP/2 requests that are reset at once
    Reset,
    /// One address at 50 times its rate limit
    Rate,
    /// A slow operation
    Slow,
    /// An edge with few file descriptors
    Files,
}

/// Options of `rig kill`.
#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// Options of the phases.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Only this phase, repeatable [default: all]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) phase: Vec<KillPhase>,
}

/// A phase of `rig kill`. The first and the last keep their places, the others run in an order chosen by the
/// seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KillPhase {
    /// No fault
    Steady,
    /// A worker is killed every second
    Kill,
    /// A worker is frozen and woken repeatedly
    Freeze,
    /// The bus is killed and restarted
    Nats,
    /// The database is unavailable
    Postgres,
    /// Segments are damaged, cut and removed under a download
    Damage,
    /// A worker is removed during many downloads
    Scale,
    /// Thousands of clients read almost nothing
    Stalled,
    /// Downloads of many gigabytes, over HTTP and over gRPC
    Large,
}

/// Options of `rig rolling`.
#[derive(Debug, Args)]
pub(crate) struct RollingArgs {
    /// Options of the phases.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Only this service, repeatable [default: all]
    #[arg(long, value_name = "SERVICE", value_parser = PossibleValuesParser::new(SERVICES.iter().map(|service| service.name)))]
    pub(crate) service: Vec<String>,
    /// How often every service is restarted
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// The traffic during the drill.
    #[command(flatten)]
    pub(crate) traffic: TrafficArgs,
}

/// Options of `rig chaos`.
#[derive(Debug, Args)]
pub(crate) struct ChaosArgs {
    /// Options of the phases.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Length of the drill, minutes; a fault is injected every 3 s
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) minutes: u32,
    /// The traffic during the drill.
    #[command(flatten)]
    pub(crate) traffic: TrafficArgs,
}

/// The traffic of a drill of the whole mesh.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Traffic")]
pub(crate) struct TrafficArgs {
    /// Reads a second, sent independently of earlier answers
    #[arg(long, value_name = "R", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) rate: u32,
    /// Downloads at the same time
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(5..=1000))]
    pub(crate) downloads: u32,
    /// Submissions a second, about
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) submissions: u32,
    /// Clients that watch, each with an event stream
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(5..=10_000))]
    pub(crate) watchers: u32,
}

/// Options of `rig truth`.
#[derive(Debug, Args)]
pub(crate) struct TruthArgs {
    /// Options of the phases.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Length of the drill, minutes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) minutes: u32,
    /// Reads a second, sent independently of earlier answers
    #[arg(long, value_name = "R", default_value_t = 300, value_parser = clap::value_parser!(u32).range(16..=20_000))]
    pub(crate) rate: u32,
}

/// Options of `rig ingest`.
#[derive(Debug, Args)]
pub(crate) struct IngestArgs {
    /// Options of the phases.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Number of killed processes [default: 1000, or 50 with --short]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) kills: Option<u32>,
}

/// Options of a drill that simulates seeds.
#[derive(Debug, Args)]
pub(crate) struct SeedsArgs {
    /// The first seed [default: a new one, which is printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Number of consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub(crate) runs: u64,
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Options of `rig watches`.
#[derive(Debug, Args)]
pub(crate) struct WatchesArgs {
    /// Options of the phases.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Only this phase, repeatable [default: all]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) phase: Vec<WatchesPhase>,
}

/// A phase of `rig watches`. The first and the last keep their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WatchesPhase {
    /// Watchers that never read, together with reading ones
    Stalled,
    /// As many watches as an edge accepts, and one more
    Full,
    /// An edge shuts down with thousands of watchers
    Drain,
}
