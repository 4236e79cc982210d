//! Options of the commands that work on a database outside the home, such as in a container next to services.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

use super::{Consensus, DemoArgs, HomeArgs, values::with_password};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct DatabaseArgs {
    /// The database
    #[arg(long, value_name = "URL", env = "MESH_DATABASE_URL", hide_env_values = true)]
    postgres: String,
    /// File with the password for the address, which then contains none
    #[arg(long, value_name = "FILE", env = "MESH_DATABASE_PASSWORD_FILE")]
    password_file: Option<PathBuf>,
}

impl DatabaseArgs {
    /// The address, with the password.
    pub(crate) fn url(&self) -> Result<String, Failure> {
        let file = self.password_file.as_ref().map(|file| file.to_string_lossy().into_owned());
        with_password(&self.postgres, file).map_err(|mistakes| {
            Failure::configuration(mistakes.replace("MESH_DATABASE_URL", "--postgres or MESH_DATABASE_URL"))
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
    /// Address of its RPC
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:26657")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Load the CSV files of this folder into an empty database instead of the demo network
    #[arg(long, value_name = "DIR")]
    pub(crate) load: Option<PathBuf>,
    /// The consensus node
    #[arg(long, value_enum, value_name = "NODE", default_value_t = Consensus::Devnode)]
    pub(crate) consensus: Consensus,
    #[command(flatten)]
    pub(crate) demo: DemoArgs,
}
