//! `mesh keys`: writes the file of the clients' keys, and follows what they use.

use std::{
    fs::{self, TryLockError},
    io,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use clap::{Args, Subcommand};
use futures_util::StreamExt as _;
use jiff::Timestamp;
use mesh_bus::{Bus, BusConfig, KeyUsage, permissions::OPERATOR};
use mesh_keys::{KeyDigest, KeyEntry};
use mesh_launcher::{
    StagedFile,
    bus::{self, BusCredentials},
    control::{Answer, Request, ask},
    stage_private, stage_replacement,
};
use tokio::time::timeout;

use crate::{
    cli::HomeArgs,
    failure::{Failure, failed},
    signals,
    terminal::{output_closed, print, print_json, try_print},
};

/// Longest wait for another command that changes the file.
const LOCKED_WITHIN: Duration = Duration::from_secs(10);

const CONNECT_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  mesh keys add bot --rate 100 --file keys.jsonl   prints the new key once; the file has only its SHA-256
  mesh up --keys keys.jsonl                        a mesh that knows these keys
  curl -H 'Authorization: Bearer KEY' http://127.0.0.1:8080/limits
  mesh keys usage                                  what each key uses, once a minute")]
pub(crate) enum KeysCommand {
    /// Makes a key, prints it, and adds its line to the file
    Add(AddArgs),
    /// Lists the keys of the file
    List {
        #[command(flatten)]
        file: FileArgs,
        /// Print a JSON array of the file's lines
        #[arg(long)]
        json: bool,
    },
    /// Removes a key from the file; running edges refuse it within five seconds
    Remove {
        /// The name of the key
        name: String,
        #[command(flatten)]
        file: FileArgs,
    },
    /// Follows what the keys of a running mesh use: a JSON line per key, operation, edge and minute
    Usage(UsageArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// The file of the keys
    #[arg(long, value_name = "FILE", env = "MESH_EDGE_KEYS_FILE")]
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The client's name in logs and usage records, at most 64 characters
    name: String,
    /// Requests a second over all edges; 0 = unlimited [default: the limit of an address]
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// Requests at once [default: 5 times the rate]
    #[arg(long, value_name = "N", requires = "rate")]
    burst: Option<u32>,
    /// Downloads at the same time; 0 = unlimited [default: the limit of an address]
    #[arg(long, value_name = "N")]
    exports: Option<u32>,
    /// Watches at the same time; 0 = unlimited [default: the limit of an address]
    #[arg(long, value_name = "N")]
    watches: Option<u32>,
    /// When the key expires, such as 2027-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    expires: Option<Timestamp>,
    #[command(flatten)]
    file: FileArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    #[command(flatten)]
    home: HomeArgs,
    /// The bus of a mesh elsewhere
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    /// File with `user:password` for the bus: the operator's
    #[arg(long, value_name = "FILE", requires = "nats")]
    credentials: Option<PathBuf>,
    /// Certificates (PEM) of the authority of the bus
    #[arg(long, value_name = "FILE", requires = "nats")]
    tls_ca: Option<PathBuf>,
    /// First token of the subjects
    #[arg(long, default_value = "mesh", requires = "nats")]
    prefix: String,
}

pub(crate) async fn keys(command: KeysCommand) -> Result<(), Failure> {
    match command {
        KeysCommand::Add(args) => add(args),
        KeysCommand::List { file, json } => list(&file.file, json),
        KeysCommand::Remove { name, file } => remove(&name, &file.file),
        KeysCommand::Usage(args) => usage(&args).await,
    }
}

fn add(args: AddArgs) -> Result<(), Failure> {
    let AddArgs { name, rate, burst, exports, watches, expires, file: FileArgs { file } } = args;
    let file = followed(&file)?;
    let _lock = lock(&file)?;
    let mut entries = match file.exists() {
        true => read(&file)?,
        false => Vec::new(),
    };
    if entries.iter().any(|entry| entry.name == name) {
        return Err(failed!("{} has a key of this name already; give another name", file.display()));
    }
    let key = mesh_keys::generate();
    let sha256 = KeyDigest::of(key.as_bytes());
    entries.push(KeyEntry { name, sha256, rate_per_s: rate, burst, exports, watches, expires });
    let text = mesh_keys::to_text(&entries);
    // As the edge reads it: a bad name is refused before the file is touched.
    mesh_keys::parse(text.as_bytes()).map_err(|fault| failed!("the key is not added: {fault}"))?;
    // A key that its owner does not see must not be in force, and one that does not fit on the disk must not be shown.
    let staged = stage(&file, &text)?;
    try_print(&key).map_err(|error| failed!("the key is not added: it cannot be printed ({error})"))?;
    staged.persist().map_err(|error| unwritten(&file, &error))
}

fn list(file: &Path, as_json: bool) -> Result<(), Failure> {
    let limit = |limit: Option<u32>| match limit {
        None => "-".to_owned(),
        Some(0) => "unlimited".to_owned(),
        Some(limit) => limit.to_string(),
    };
    let (now, entries) = (Timestamp::now(), read(&followed(file)?)?);
    if as_json {
        return print_json(&entries);
    }
    print(&format!(
        "{:<32} {:>9} {:>9} {:>9} {:>9}  expires",
        "name", "rate/s", "burst", "exports", "watches"
    ))?;
    for entry in entries {
        let KeyEntry { name, rate_per_s, burst, exports, watches, expires, .. } = entry;
        let [rate, burst, exports, watches] = [rate_per_s, burst, exports, watches].map(limit);
        let expires = match expires {
            None => "-".to_owned(),
            Some(time) if time <= now => format!("{time} (expired)"),
            Some(time) => time.to_string(),
        };
        print(&format!("{name:<32} {rate:>9} {burst:>9} {exports:>9} {watches:>9}  {expires}"))?;
    }
    Ok(())
}

fn remove(name: &str, file: &Path) -> Result<(), Failure> {
    let file = &followed(file)?;
    // No lock file beside a file that does not exist.
    read(file)?;
    let _lock = lock(file)?;
    let mut entries = read(file)?;
    let before = entries.len();
    entries.retain(|entry| entry.name != name);
    if entries.len() == before {
        return Err(failed!("{} has no key of this name; `mesh keys list` lists them", file.display()));
    }
    let staged = stage(file, &mesh_keys::to_text(&entries))?;
    staged.persist().map_err(|error| unwritten(file, &error))
}

/// The file that a link leads to: writing would replace the link. Anything but a regular file is refused: a device may have no
/// end, and would be replaced, too.
pub(crate) fn followed(file: &Path) -> Result<PathBuf, Failure> {
    match file.canonicalize() {
        Ok(file) if file.is_file() => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(file.to_owned()),
        Err(error) => Err(failed!("cannot read {} ({error})", file.display())),
        Ok(_) => Err(failed!("{} is not a regular file; give another one", file.display())),
    }
}

fn read(file: &Path) -> Result<Vec<KeyEntry>, Failure> {
    let bytes = fs::read(file).map_err(|error| failed!("cannot read {} ({error})", file.display()))?;
    mesh_keys::parse(&bytes).map_err(|fault| failed!("{} is faulty: {fault}", file.display()))
}

/// Locks a file beside the file until the returned lock is dropped: of two commands that change it at the same time, one would
/// lose the other's change. The file itself is replaced, and a running mesh has the lock of its home's folder.
fn lock(file: &Path) -> Result<fs::File, Failure> {
    let path = file.with_file_name(format!(".{}.lock", file.file_name().unwrap_or_default().display()));
    // The lock file of another user can be opened for reading alone, which suffices to lock it.
    let opened =
        fs::File::open(&path).or_else(|_| fs::OpenOptions::new().create(true).append(true).open(&path));
    let locked = opened.map_err(|error| {
        let (file, path) = (file.display(), path.display());
        failed!("cannot lock {file}: {path} cannot be opened ({error}); give another --file")
    })?;
    let until = Instant::now() + LOCKED_WITHIN;
    // Any other error is that of a file system without locks.
    while let Err(TryLockError::WouldBlock) = locked.try_lock() {
        if Instant::now() > until {
            return Err(failed!("{} is being changed by another command; try again", file.display()));
        }
        sleep(Duration::from_millis(10));
    }
    Ok(locked)
}

/// Writes the text beside the file, which it then replaces, so that an edge never reads a part of it. The permissions and the
/// owner stay.
fn stage(file: &Path, text: &str) -> Result<StagedFile, Failure> {
    let staged = match file.metadata() {
        Ok(before) => stage_replacement(file, text.as_bytes(), &before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => stage_private(file, text.as_bytes(), true),
        Err(error) => return Err(failed!("cannot read {} ({error})", file.display())),
    };
    staged.map_err(|error| unwritten(file, &error))
}

fn unwritten(file: &Path, error: &io::Error) -> Failure {
    failed!("cannot write {} ({error}); give another --file", file.display())
}

async fn usage(args: &UsageArgs) -> Result<(), Failure> {
    let mut signals = signals::watch()?;
    let bus = Bus::connect(bus_of(args).await?).await?;
    let connected = timeout(CONNECT_WITHIN, bus.until_connected()).await;
    connected.map_err(|_| failed!("the bus does not answer; see `mesh doctor`"))?;
    let mut records = bus.subscribe::<KeyUsage>().await?;
    let follow = async {
        while let Some(record) = records.next().await {
            if try_print(&serde_json::to_string(&record)?).is_err() {
                return Ok(());
            }
        }
        Err(failed!("the connection to the bus is closed"))
    };
    tokio::select! {
        outcome = follow => outcome,
        () = signals.stop() => Ok(()),
        () = output_closed() => Ok(()),
    }
}

/// The settings of the bus that the arguments name, or of the mesh in the home.
async fn bus_of(args: &UsageArgs) -> Result<BusConfig, Failure> {
    let config = |url, credentials: Option<PathBuf>, tls_ca, prefix: &str| {
        let bus = bus::Bus { url, credentials: credentials.map(BusCredentials::Shared), tls_ca };
        bus.config(OPERATOR, prefix).map_err(|error| failed!("the bus's credentials: {error}"))
    };
    if let Some(url) = &args.nats {
        return config(url.clone(), args.credentials.clone(), args.tls_ca.clone(), &args.prefix);
    }
    let home = args.home.home()?;
    let asked = ask(&home, &Request::Environment { name: "edge".to_owned() }).await;
    let Ok(Answer::Environment { variables }) = asked else {
        let root = home.root().display();
        return Err(failed!("no mesh runs in {root}; name its folder with --home, or its bus with --nats"));
    };
    let get =
        |name: &str| variables.iter().rev().find(|(found, _)| found == name).map(|(_, value)| value.clone());
    let credentials = get("MESH_BUS_CREDENTIALS").map(|edges| {
        // Beside the edge's file, unless all users share one.
        let operators = Path::new(&edges).with_file_name(OPERATOR);
        if operators.exists() { operators } else { edges.into() }
    });
    config(
        get("MESH_BUS_URL").unwrap_or_default(),
        credentials,
        get("MESH_BUS_TLS_CA").map(PathBuf::from),
        &get("MESH_BUS_PREFIX").unwrap_or_else(|| "mesh".to_owned()),
    )
}
