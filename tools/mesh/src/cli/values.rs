//! Values of options: their syntax, and what is wrong with one that does not parse.

use std::{env, str::FromStr};

use mesh_chassis::{Database, Env};
use mesh_launcher::services;
use mesh_node_rpc::NodeUrl;
use mesh_store::check_address;
use tokio_postgres::config::Host;

use crate::processes::{APPLICATION, COMETBFT, DECODER, DEVNODE, NATS, POSTGRES};

/// The most replicas of one service on one machine.
const MOST_REPLICAS: u32 = 64;
const PASSWORD_FILE: &str = "MESH_DATABASE_PASSWORD_FILE";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) service: &'static str,
    pub(crate) replicas: u32,
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = text.split_once('=').ok_or("write it as SERVICE=N, such as query=2")?;
        let service = services::find(name).ok_or_else(|| no_such(name, &service_names()))?.name;
        let replicas = number.parse().ok().filter(|replicas| *replicas <= MOST_REPLICAS);
        let replicas = replicas.ok_or_else(|| format!("N must be between 0 and {MOST_REPLICAS}"))?;
        Ok(Self { service, replicas })
    }
}

/// A process or all processes of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// The replica, or all.
    pub(crate) replica: Option<u32>,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, replica) = match text.split_once('=') {
            None => (text, None),
            Some((name, replica)) => {
                (name, Some(replica.parse().map_err(|_| "REPLICA must be a number from 0")?))
            }
        };
        Ok(Self { name: process_name(name)?, replica })
    }
}

/// A command that runs without a shell, written as for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandWords {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
}

impl FromStr for CommandWords {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = shlex::split(text).unwrap_or_default().into_iter();
        let program = words.next().ok_or("it is not a command; name a program, and close each quote")?;
        Ok(Self { program, arguments: words.collect() })
    }
}

/// Splits a variable into its name and its value.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !text.contains('\0') => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

pub(crate) fn node_url(text: &str) -> Result<String, String> {
    text.parse::<NodeUrl>().map(|_| text.to_owned())
}

/// The address of a database. Without a password it gets that of the file `MESH_DATABASE_PASSWORD_FILE`, which no list of
/// processes shows.
pub(crate) fn postgres_url(text: &str) -> Result<String, String> {
    let parsed = text.parse::<tokio_postgres::Config>();
    let is_here = |host: &Host| matches!(host, Host::Unix(_));
    let needs_password = parsed.is_ok_and(|config| {
        config.get_password().is_none()
            && config.get_user().is_some()
            && !config.get_hosts().iter().any(is_here)
    });
    match env::var(PASSWORD_FILE).ok().filter(|_| needs_password) {
        Some(file) => with_password(text, Some(file)),
        None => Ok(text.to_owned()),
    }
}

/// The checked address of a database, with the password of a file. An error names the variables of the services.
pub(super) fn with_password(url: &str, file: Option<String>) -> Result<String, String> {
    let variables = file.map(|file| (PASSWORD_FILE.to_owned(), file)).into_iter();
    let mut env = Env::of(variables.chain([("MESH_DATABASE_URL".to_owned(), url.to_owned())]));
    let url = Database::read_primary(&mut env, check_address);
    if env.mistakes().is_empty() { Ok(url) } else { Err(env.mistakes().join("; ")) }
}

pub(crate) fn process_name(name: &str) -> Result<String, String> {
    let mut names = service_names();
    names.extend([POSTGRES, NATS, DEVNODE, COMETBFT, APPLICATION, DECODER]);
    if names.contains(&name) { Ok(name.to_owned()) } else { Err(no_such(name, &names)) }
}

fn service_names() -> Vec<&'static str> {
    services::SERVICES.iter().map(|service| service.name).collect()
}

fn no_such(name: &str, names: &[&str]) -> String {
    format!("there is no {name:?}, only {}", names.join(", "))
}
