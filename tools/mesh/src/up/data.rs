//! What the database of a mesh holds: what is there stays, and what is empty is filled once.
//!
//! Comes in: the options and what the home remembers. Goes out: a database with blocks, and what the development
//! node has to know about it.

use std::path::{Path, PathBuf};

use mesh_launcher::home::{Data, Home, Memory};
use tokio_postgres::NoTls;

use super::say;
use crate::cli::UpArgs;
use crate::failure::{Failure, with_causes};
use crate::load::load_into;

/// What the database holds.
pub(super) enum Held {
    /// Rows that came from elsewhere; only empty blocks follow.
    Loaded,
}

impl Held {
    /// What the development node is told.
    pub(super) fn variables(&self, _home: &Home) -> Result<Vec<(String, String)>, Failure> {
        Ok(Vec::new())
    }
}

/// Fills the database when it is empty.
pub(super) async fn fill(home: &Home, url: &str, args: &UpArgs) -> Result<Held, Failure> {
    let database = args.postgres.as_deref().map(name_of);
    if has_blocks(url).await? {
        return Ok(keep(args));
    }
    match &args.load {
        Some(folder) => load(home, url, database, folder).await,
        None => Ok(Held::Loaded),
    }
}

fn keep(args: &UpArgs) -> Held {
    if let Some(folder) = &args.load {
        say(&format!("keeping the data that is there; to load {}, give another --home", folder.display()));
    }
    Held::Loaded
}

async fn load(home: &Home, url: &str, database: Option<String>, folder: &Path) -> Result<Held, Failure> {
    load_into(url, folder).await?;
    let folder = std::path::absolute(folder).unwrap_or_else(|_| PathBuf::from(folder));
    remember(home, database, Data::Loaded { folder })?;
    Ok(Held::Loaded)
}

fn remember(home: &Home, database: Option<String>, data: Data) -> Result<(), Failure> {
    let memory = Memory { database, data: Some(data), complete: true };
    home.remember(&memory).map_err(|error| Failure::failed(error.to_string()))
}

async fn has_blocks(url: &str) -> Result<bool, Failure> {
    let asked = async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let ask = async { Ok(client.query_one("SELECT EXISTS (SELECT FROM blocks)", &[]).await?.get(0)) };
        tokio::select! {
            found = ask => found,
            ended = connection => ended.map(|()| false),
        }
    };
    asked.await.map_err(|error: tokio_postgres::Error| {
        Failure::failed(format!("cannot see what the database holds: {}", with_causes(&error)))
    })
}

/// A database's name without its password.
fn name_of(url: &str) -> String {
    url.rsplit_once('@').map_or(url, |(_, place)| place).to_owned()
}
