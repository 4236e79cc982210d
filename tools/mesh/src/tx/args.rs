//! Command-line options of `mesh tx`.

use std::path::PathBuf;

use clap::{
    Args, Subcommand,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use mesh_transaction::{ALGORITHM, MAX_BITS, TxHash};
use proto_msgs::v2::{SubmissionType, TxVersion};

use crate::gateway::GatewayArgs;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  mesh tx keygen my.key
  mesh tx sign --key my.key --input command.bin > tx.json
  mesh tx submit tx.json --wait
  mesh tx status HASH
  mesh tx demo faucet --asset VOTE --key my.key --wait")]
pub(crate) enum TxCommand {
    /// Creates a key, writes it to a file that only its owner can read, and prints its public key
    Keygen {
        /// The file of the key
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Replace an existing FILE, whose key is lost
        #[arg(long)]
        force: bool,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Builds and signs a transaction, finds its proof of work and prints the body of its submission
    Sign(SignArgs),
    /// Submits the output of `sign`
    Submit {
        /// The file with what `sign` printed
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,
        #[command(flatten)]
        submission: SubmissionArgs,
    },
    /// Asks the node whether it would accept the output of `sign`
    Check {
        /// The file with what `sign` printed
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,
        #[command(flatten)]
        gateway: GatewayArgs,
        /// Print the gateway's answer as a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Prints the state of a transaction
    Status {
        /// Hash of the transaction
        #[arg(value_name = "HASH")]
        hash: TxHash,
        #[command(flatten)]
        gateway: GatewayArgs,
        /// Print the gateway's answer as a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Signs and submits a command that the demo network executes
    #[command(subcommand)]
    Demo(DemoCommand),
}

/// A command of the demo network.
#[derive(Debug, Subcommand)]
pub(crate) enum DemoCommand {
    /// Credits the key with 1,000 whole units of an asset, once per key and asset
    Faucet {
        /// The id of the asset
        #[arg(long, value_name = "ID")]
        asset: String,
        /// How it is signed and submitted.
        #[command(flatten)]
        send: SendArgs,
    },
    /// Moves an amount of an asset from the key to another party
    Transfer {
        /// The public key of the receiver
        #[arg(long, value_name = "PARTY", value_parser = hex_of_32_bytes)]
        to: String,
        /// The id of the asset
        #[arg(long, value_name = "ID")]
        asset: String,
        /// The amount in the smallest unit of the asset
        #[arg(long, value_name = "N")]
        amount: String,
        /// How it is signed and submitted.
        #[command(flatten)]
        send: SendArgs,
    },
}

/// How a command is signed and submitted at once.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) submission: SubmissionArgs,
    /// The last one, because its heading is that of all that follows.
    #[command(flatten)]
    pub(crate) signing: SigningArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SignArgs {
    /// The command to be signed.
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
    /// Print only the body, which is a JSON object in any case
    #[arg(long)]
    pub(crate) json: bool,
    /// How it is signed. The last one, because its heading is that of all that follows.
    #[command(flatten)]
    pub(crate) signing: SigningArgs,
}

/// How a command is signed.
#[derive(Debug, Args)]
pub(crate) struct SigningArgs {
    /// The file of the key, as `keygen` wrote it
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// Signed data: 2 = the command, 3 = the chain's id and the command
    #[arg(long, value_name = "2|3", default_value = "3", value_parser = tx_version())]
    pub(crate) tx_version: TxVersion,
    /// The chain's id [default: that of the gateway's chain]
    #[arg(long, value_name = "ID")]
    pub(crate) chain_id: Option<String>,
    /// The network's name of the signature algorithm
    #[arg(long, value_name = "NAME", default_value = ALGORITHM, env = "MESH_RELAY_SIGNATURE_ALGO")]
    pub(crate) algorithm: String,
    /// The proof of work.
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// The command to be signed, in one of three ways.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct InputArgs {
    /// File with the command's bytes, `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// The command's bytes as hex
    #[arg(long, value_name = "DIGITS", value_parser = hex_bytes)]
    pub(crate) hex: Option<InputData>,
    /// The command's bytes as base64
    #[arg(long, value_name = "TEXT", value_parser = base64_bytes)]
    pub(crate) base64: Option<InputData>,
}

/// The bytes of a command, never none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputData(pub(crate) Vec<u8>);

/// What the proof of work is done for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Proof of work")]
pub(crate) struct WorkArgs {
    /// Hash of the block for the proof of work [default: the gateway's newest]
    #[arg(long, value_name = "DIGITS", value_parser = hex_of_32_bytes)]
    pub(crate) block_hash: Option<String>,
    /// Required leading zero bits, 0 to 256 [default: the network's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_BITS)))]
    pub(crate) difficulty: Option<u32>,
    /// Id of the proof of work, usable once [default: a random one]
    #[arg(long, value_name = "TEXT")]
    pub(crate) tid: Option<String>,
    /// Prefix of the network's preimages
    #[arg(long, value_name = "TEXT", default_value = "", env = "MESH_POW_PREFIX")]
    pub(crate) pow_prefix: String,
    /// Omit the proof of work, as for validators' own commands
    #[arg(long, conflicts_with_all = ["block_hash", "difficulty", "tid"])]
    pub(crate) no_pow: bool,
}

/// How a transaction is submitted and followed.
#[derive(Debug, Args)]
pub(crate) struct SubmissionArgs {
    /// What to wait for: nothing, the node's check, or a block
    #[arg(long, value_name = "TYPE", default_value = "sync", value_parser = submission_type(), ignore_case = true)]
    pub(crate) r#type: SubmissionType,
    /// Follow the transaction until it is in a block
    #[arg(long)]
    pub(crate) wait: bool,
    /// Stop following after this time
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) patience: u32,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
    /// Print the gateway's last answer as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn tx_version() -> impl TypedValueParser<Value = TxVersion> {
    PossibleValuesParser::new([
        PossibleValue::new("2").help("The command"),
        PossibleValue::new("3").help("The chain's id and the command"),
    ])
    .map(|typed| if typed == "2" { TxVersion::V2 } else { TxVersion::V3 })
}

fn submission_type() -> impl TypedValueParser<Value = SubmissionType> {
    PossibleValuesParser::new([
        PossibleValue::new("async").alias("TYPE_ASYNC").help("Nothing"),
        PossibleValue::new("sync").alias("TYPE_SYNC").help("The node's check"),
        PossibleValue::new("commit").alias("TYPE_COMMIT").help("A block"),
    ])
    .map(|typed| match typed.to_ascii_lowercase().trim_start_matches("type_") {
        "async" => SubmissionType::TypeAsync,
        "commit" => SubmissionType::TypeCommit,
        _ => SubmissionType::TypeSync,
    })
}

fn hex_bytes(text: &str) -> Result<InputData, String> {
    not_empty(hex::decode(text).map_err(|_| "write an even number of hex digits")?)
}

fn base64_bytes(text: &str) -> Result<InputData, String> {
    use base64::Engine as _;
    not_empty(base64::engine::general_purpose::STANDARD.decode(text).map_err(|_| "it is not base64")?)
}

fn not_empty(bytes: Vec<u8>) -> Result<InputData, String> {
    if bytes.is_empty() { Err("a command has at least one byte".to_owned()) } else { Ok(InputData(bytes)) }
}

fn hex_of_32_bytes(text: &str) -> Result<String, String> {
    let is_hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex { Ok(text.to_ascii_lowercase()) } else { Err("write 64 hex digits".to_owned()) }
}
