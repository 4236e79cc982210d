//! The forms of `mesh rig`: each drill has its own options, and its own list of phases.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum, builder::PossibleValuesParser};
use mesh_launcher::services::SERVICES;

/// Options of `rig`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = false, subcommand_value_name = "DRILL")]
pub(crate) struct RigArgs {
    /// What to put through what
    #[command(subcommand)]
    pub(crate) drill: Drill,
}

/// A drill.
#[derive(Debug, Subcommand)]
pub(crate) enum Drill {
    /// Reads go on while replicas and servers do not
    Reads(ReadsArgs),
    /// Downloads go on while workers, servers, segments and clients do not
    Kill(KillArgs),
    /// Reads go on while others attack
    Flood(FloodArgs),
    /// Every transaction has one fate while the node and the relays do not live long
    Fates(RunArgs),
    /// Every service is replaced, twice around, under reads, downloads and submissions
    Rolling(RollingArgs),
    /// Every few seconds something happens to somebody, and no client gets a wrong answer
    Chaos(ChaosArgs),
    /// Every answer is what the store held at its height, while services and servers come and go
    Truth(TruthArgs),
    /// Kills and freezes everything between a chain and the store; no row may be missing or there twice
    Ingest(IngestArgs),
    /// Simulated replicas of ingest bring a chain into a store under faults, a seed each
    Order(SeedsArgs),
    /// Simulated streams meet every fault there is, a seed each
    Streams(SeedsArgs),
    /// Watches at their limits: some that are never read, as many as an edge takes, an edge that ends
    Watches(WatchesArgs),
}

/// Options of a drill on a private mesh.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Source of every random choice; the same one repeats a run [default: a new one, which is printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How often, each time with the next seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Take less time and less of everything, as CI does
    #[arg(long)]
    pub(crate) short: bool,
    /// Write the figures into this file, too
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Options of a drill that is played in phases on a private mesh.
#[derive(Debug, Args)]
pub(crate) struct PlayArgs {
    /// How it is run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Allow so many times the time that each bar allows, for builds without optimisation on a busy machine
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(crate) slack: u32,
}

impl PlayArgs {
    /// A time limit times the slack.
    pub(crate) fn bound(&self, time: Duration) -> Duration {
        time * self.slack
    }

    /// A least share, divided by the slack.
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
    /// How it is played.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Only this, repeatable [default: all]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) phase: Vec<ReadsPhase>,
    /// Requests a second, whatever becomes of those before
    #[arg(long, value_name = "R", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) rate: u32,
}

/// A phase of `rig reads`. The first and the last keep their places, the others run in an order chosen by the
/// seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadsPhase {
    /// Nothing happens
    Steady,
    /// A replica is killed
    Kill,
    /// A replica is frozen and woken
    Freeze,
    /// The database is stopped and started
    Postgres,
    /// The bus is killed and comes back
    Nats,
    /// All replicas are replaced one after the other
    Rolling,
    /// Clients go away before slow answers come
    Abort,
    /// Services are started before their servers
    Order,
}

/// Options of `rig flood`.
#[derive(Debug, Args)]
pub(crate) struct FloodArgs {
    /// How it is played.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Only this, repeatable [default: all]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) phase: Vec<FloodPhase>,
    /// Requests a second of those who do not attack
    #[arg(long, value_name = "R", default_value_t = 90, value_parser = clap::value_parser!(u32).range(10..=95))]
    pub(crate) rate: u32,
}

/// A phase of `rig flood`. The first and the last keep their places, the others run in an order chosen by the
/// seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FloodPhase {
    /// Connections on which half a head comes
    Head,
    /// Connections on which nothing comes
    Silent,
    /// Bodies of which a byte comes a second
    Body,
    /// Clients that read nothing of a long answer
    Unread,
    /// Clients of HTTP/2 that leave no room for the answer
    Window,
    /// Connections that are kept and not used
    Idle,
    /// Requests over HTTP/2 that are taken back at once
    Reset,
    /// One address at 50 times the rate that it may have
    Rate,
    /// An operation that became slow
    Slow,
    /// An edge with few file descriptors
    Files,
}

/// Options of `rig kill`.
#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// How it is played.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Only this, repeatable [default: all]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) phase: Vec<KillPhase>,
}

/// A phase of `rig kill`. The first and the last keep their places, the others run in an order chosen by the
/// seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KillPhase {
    /// Nothing happens
    Steady,
    /// A worker is killed every second
    Kill,
    /// A worker is frozen and woken, again and again
    Freeze,
    /// The bus is killed and comes back
    Nats,
    /// The database is away
    Postgres,
    /// Segments are damaged, cut and removed under a download
    Damage,
    /// A worker leaves while many downloads go on
    Scale,
    /// Thousands of clients take almost nothing
    Stalled,
    /// Downloads of many gigabytes, over HTTP and over gRPC
    Large,
}

/// Options of `rig rolling`.
#[derive(Debug, Args)]
pub(crate) struct RollingArgs {
    /// How it is played.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Only this service, repeatable [default: all]
    #[arg(long, value_name = "SERVICE", value_parser = PossibleValuesParser::new(SERVICES.iter().map(|service| service.name)))]
    pub(crate) service: Vec<String>,
    /// How often every service is replaced
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// What goes on meanwhile.
    #[command(flatten)]
    pub(crate) traffic: TrafficArgs,
}

/// Options of `rig chaos`.
#[derive(Debug, Args)]
pub(crate) struct ChaosArgs {
    /// How it is played.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// How long something happens every three seconds
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) minutes: u32,
    /// What goes on meanwhile.
    #[command(flatten)]
    pub(crate) traffic: TrafficArgs,
}

/// What the clients of a drill of the whole mesh do.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Traffic")]
pub(crate) struct TrafficArgs {
    /// Reads a second, whatever becomes of those before
    #[arg(long, value_name = "R", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) rate: u32,
    /// Downloads at the same time
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(5..=1000))]
    pub(crate) downloads: u32,
    /// Submissions a second, about
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) submissions: u32,
    /// Clients that watch, each with a stream of events
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(5..=10_000))]
    pub(crate) watchers: u32,
}

/// Options of `rig truth`.
#[derive(Debug, Args)]
pub(crate) struct TruthArgs {
    /// How it is played.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// How long one fault follows the other
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) minutes: u32,
    /// Reads a second, whatever becomes of those before
    #[arg(long, value_name = "R", default_value_t = 300, value_parser = clap::value_parser!(u32).range(16..=20_000))]
    pub(crate) rate: u32,
}

/// Options of `rig ingest`.
#[derive(Debug, Args)]
pub(crate) struct IngestArgs {
    /// How it is played.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// How many processes are killed [default: 1000, or 50 with --short]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) kills: Option<u32>,
}

/// Options of a drill that simulates seeds.
#[derive(Debug, Args)]
pub(crate) struct SeedsArgs {
    /// The first seed [default: a new one, which is printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How many seeds, one after the other
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub(crate) runs: u64,
    /// Write the figures into this file, too
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Options of `rig watches`.
#[derive(Debug, Args)]
pub(crate) struct WatchesArgs {
    /// How it is played.
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Only this, repeatable [default: all]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) phase: Vec<WatchesPhase>,
}

/// A phase of `rig watches`. The first and the last keep their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WatchesPhase {
    /// Watchers that never read, beside others
    Stalled,
    /// As many watches as an edge takes, and one more
    Full,
    /// An edge ends while thousands watch
    Drain,
}
