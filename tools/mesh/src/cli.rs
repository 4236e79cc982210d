//! Commands and options of `mesh`. They are a stable interface: acceptance tests outside this repository use
//! them.

mod database;
mod history;
mod values;

use std::{ffi::OsString, net::IpAddr, path::PathBuf};

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
pub(crate) use database::{DatabaseArgs, NodeArgs};
pub(crate) use history::{HistoryCommand, ImportArgs, SealArgs, VerifyArgs};
use mesh_launcher::home::Home;
pub(crate) use values::{CommandWords, Count, Target, node_url, postgres_url, process_name, variable};

use crate::{
    export::args::ExportArgs,
    failure::{Failure, failed},
    get::GetArgs,
    ingest::args::IngestCommand,
    keys::KeysCommand,
    tx::args::TxCommand,
    watch::args::WatchArgs,
};

/// Runs and drives a mesh on this machine.
#[derive(Debug, Parser)]
#[command(name = "mesh", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Starts everything: servers, services, and a demo network when there is no data; Ctrl-C stops it
    Up(Box<UpArgs>),
    /// Stops a running mesh in order, as Ctrl-C does, and waits until it has ended
    #[command(after_help = "Examples:
  nohup mesh up > mesh.log 2>&1 &   a mesh in the background
  mesh down                         stops it; its data stays
  mesh down && rm -rf .mesh         stops it and removes its data: the next `mesh up` begins a new network")]
    Down(HomeArgs),
    /// Lists the processes of a running mesh
    Ps {
        #[command(flatten)]
        home: HomeArgs,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Stops a process until `start`, for a drill
    Stop(ControlArgs),
    /// Starts a process that `stop` has stopped
    Start(ControlArgs),
    /// Replaces the replicas of a service in turn
    Restart {
        /// The service
        #[arg(value_name = "SERVICE", value_parser = process_name)]
        name: String,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Changes the number of replicas of a service
    #[command(after_help = "Example:
  mesh scale export=4")]
    Scale {
        /// The service and its number of replicas
        #[arg(value_name = "SERVICE=N")]
        count: Count,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Loads the CSV files of a folder, one per table, into an empty database
    Load {
        /// The folder with the CSV files
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The database; it is migrated first
        #[arg(long, value_name = "URL", value_parser = postgres_url)]
        postgres: String,
        /// The database's own history, whose running span is sealed before a migration that changes exports
        #[arg(long, value_name = "URL")]
        history: Option<String>,
    },
    /// Migrates a database to the newest schema
    Migrate {
        #[command(flatten)]
        database: DatabaseArgs,
        /// The database's own history, whose running span is sealed before a migration that changes exports
        #[arg(long, value_name = "URL", env = "MESH_HISTORY_URL")]
        history: Option<String>,
    },
    /// Runs the consensus node of a mesh alone, and a demo network when there is no data; for containers
    Node(Box<NodeArgs>),
    /// Decodes, records and checks blocks of a consensus node, or stores blocks of another source
    #[command(subcommand)]
    Ingest(IngestCommand),
    /// Seals every complete segment of the history that is not sealed yet
    Seal(SealArgs),
    /// Checks sealed history, or loads it into a database
    #[command(subcommand)]
    History(HistoryCommand),
    /// Downloads a table of the sealed history; resumes an interrupted download
    Export(ExportArgs),
    /// Creates keys and transactions, submits them and prints their outcome
    #[command(subcommand)]
    Tx(TxCommand),
    /// Prints the answer to a read, now or as of a block
    Get(GetArgs),
    /// Watches a read and prints each change of its answer
    Watch(WatchArgs),
    /// Makes and removes keys of clients, and follows what they use
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Checks this machine or a running mesh, and prints what is missing or wrong and how to correct it
    Doctor(DoctorArgs),
    /// Prints the completions of a shell
    #[command(after_help = "Examples:
  source <(mesh completions bash)
  mesh completions zsh > \"${fpath[1]}/_mesh\"
  mesh completions fish > ~/.config/fish/completions/mesh.fish")]
    Completions {
        /// The shell
        #[arg(value_enum, value_name = "SHELL")]
        shell: Shell,
    },
    /// Packs all programs of a checkout into an archive for machines without Rust
    #[command(after_help = "Example:
  cargo mesh dist --out /tmp   builds the release programs and packs them

The archive contains mesh, the services, completions, licences and SHA256SUMS. On the other machine:
  tar -xzf tradewind-*.tar.gz && cd tradewind-*/ && sha256sum --check SHA256SUMS && ./mesh up")]
    Dist {
        /// Folder of the archive [default: dist in cargo's target folder]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Measures the product on this machine and prints a table
    Bench(LaboratoryArgs),
    /// Runs a drill on a mesh and reports the bars that do not hold
    Rig(LaboratoryArgs),
    /// Runs everything that CI runs: formatting, lints, tests with real servers, documentation
    #[command(after_help = "Examples:
  mesh test                         everything that CI runs
  mesh test integration             one test program, with the services it starts
  mesh test integration watch::     some of its tests")]
    Test {
        /// Run only this test program, as in `cargo test --test` [default: all steps of CI]
        #[arg(value_name = "PROGRAM")]
        program: Option<String>,
        /// Run only tests whose name contains one of these
        #[arg(value_name = "FILTER")]
        filters: Vec<String>,
    },
    /// Writes the generated files of a checkout: tables of documents, bus permissions, alert rules
    Update,
    /// Creates a block about every second
    #[command(hide = true)]
    Devnode,
    /// Checks and executes transactions for CometBFT
    #[command(hide = true)]
    Application,
}

#[derive(Debug, Args)]
pub(crate) struct HomeArgs {
    /// Folder with all files of the mesh [default: .mesh in the checkout; outside of one, in the current folder]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
}

impl HomeArgs {
    /// The home of `--home`, or the default one.
    pub(crate) fn home(&self) -> Result<Home, Failure> {
        let home = match &self.home {
            Some(root) => Home::at(root),
            None => Home::default_location(),
        };
        home.map_err(|error| failed!("cannot determine the home ({error}); set it with --home"))
    }
}

/// The port for HTTP when none is given.
pub(crate) const HTTP_PORT: u16 = 8080;
/// The port for gRPC when none is given.
pub(crate) const GRPC_PORT: u16 = 9090;

#[derive(Debug, Args)]
pub(crate) struct PortArgs {
    /// Port for HTTP; 0 chooses a free one
    #[arg(long, default_value_t = HTTP_PORT)]
    pub(crate) port: u16,
    /// Port for gRPC; 0 chooses a free one
    #[arg(long, default_value_t = GRPC_PORT)]
    pub(crate) grpc_port: u16,
    /// Address on which both ports are opened
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Speak TLS on both ports, with the certificate in this PEM file and those that certify it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The clients' keys; see `mesh keys`
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mesh up                                       a mesh with a simulated network
  mesh up --port 0 --grpc-port 0 --home /tmp/m  a second mesh
  mesh up --load FOLDER --home .mesh-real       your own data, one CSV file per table
  mesh up --node URL --decoder 'python3 decoder.py'   your own chain
  mesh up --replicas export=3 --consensus cometbft")]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) ports: PortArgs,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Load the CSV files of this folder instead of the demo network
    #[arg(long, value_name = "DIR")]
    pub(crate) load: Option<PathBuf>,
    /// Number of replicas of a service, repeatable [default: 1 of each]
    #[arg(long, value_name = "SERVICE=N")]
    pub(crate) replicas: Vec<Count>,
    /// Further variable for every process, repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Use this running NATS server instead of a private one; several of a cluster with commas
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// Use this running PostgreSQL instead of a private one
    #[arg(long, value_name = "URL", value_parser = postgres_url)]
    pub(crate) postgres: Option<String>,
    /// The RPC of this consensus node instead of the development node's; its blocks fill the empty database
    #[arg(long, value_name = "URL", value_parser = node_url)]
    pub(crate) node: Option<String>,
    /// The consensus node
    #[arg(long, value_enum, value_name = "NODE", default_value_t = Consensus::Devnode, conflicts_with = "node")]
    pub(crate) consensus: Consensus,
    /// Run this command, without a shell, as a decoder, which turns the node's blocks into rows over the bus
    #[arg(long, value_name = "COMMAND")]
    pub(crate) decoder: Option<CommandWords>,
    /// Store the blocks of `--node` above the rows of `--load`, too
    #[arg(long)]
    pub(crate) ingest: bool,
    #[command(flatten)]
    pub(crate) demo: DemoArgs,
}

impl UpArgs {
    /// Whether the mesh stores the blocks of its node. With a foreign node, loaded rows are not continued.
    pub(crate) fn stores_blocks(&self) -> bool {
        self.ingest || self.load.is_none() || self.node.is_none()
    }
}

/// The consensus node of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Consensus {
    /// The built-in development node
    Devnode,
    /// A real CometBFT 0.38 from the PATH, with the built-in application
    Cometbft,
}

/// Parameters of the demo network; the defaults are the generator's.
#[derive(Debug, Args)]
#[command(next_help_heading = "Demo network")]
pub(crate) struct DemoArgs {
    /// Source of every random choice
    #[arg(long, value_name = "N")]
    pub(crate) demo_seed: Option<u64>,
    /// Blocks of history
    #[arg(long, value_name = "N")]
    pub(crate) demo_blocks: Option<u64>,
    /// Markets that trade
    #[arg(long, value_name = "N")]
    pub(crate) demo_markets: Option<usize>,
    /// Parties that trade
    #[arg(long, value_name = "N")]
    pub(crate) demo_parties: Option<usize>,
    /// Begin the history at this time (seconds since 1970) instead of ending it now, so that the same seed
    /// gives the same history to the byte
    #[arg(long, value_name = "SECONDS")]
    pub(crate) demo_start: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    /// A service, postgres, nats-server, devnode, cometbft or application; with a number, that replica only
    #[arg(value_name = "NAME[=REPLICA]")]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mesh doctor                 this machine, and the mesh that runs on it
  mesh doctor --postgres URL  a database that a mesh is to use
  mesh doctor --json          the same for programs; exit code 1 when something is wrong")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Port for HTTP [default: that of the mesh in the home, now or at its last start, else 8080]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Port for gRPC [default: that of the mesh in the home, now or at its last start, else 9090]
    #[arg(long, value_name = "N")]
    pub(crate) grpc_port: Option<u16>,
    /// Address of both ports [default: that of the mesh in the home, else 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Option<IpAddr>,
    /// A database that the mesh is to use, or does [default: that of the mesh that runs]
    #[arg(long, value_name = "URL", value_parser = postgres_url)]
    pub(crate) postgres: Option<String>,
    /// A NATS server that the mesh is to use, or does [default: that of the mesh that runs]
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// The RPC of a consensus node that the mesh is to use, or does [default: that of the mesh that runs]
    #[arg(long, value_name = "URL", value_parser = node_url)]
    pub(crate) node: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments for the laboratory, whose program checks them.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct LaboratoryArgs {
    /// See `--help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<OsString>,
}

pub(crate) fn completions(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mesh", &mut text);
    text
}
