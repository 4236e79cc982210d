//! The supervised processes: the program `mesh` with a hidden command, configured by variables.

use std::{
    net::SocketAddr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use mesh_launcher::{
    Ready, ReplicaSpec,
    home::Home,
    process::ProcessSpec,
    servers::cometbft_height,
    supervisor::{Group, Tier},
};

use crate::{
    APPLICATION, DEVNODE,
    config::{FILE, LISTEN},
    prepare::devnode_file,
};

/// How long the process has to end after SIGTERM, before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// The development node. It answers on `listen`, else on any free port; `more` are further variables.
pub fn devnode(
    program: impl Into<PathBuf>,
    home: &Home,
    listen: Option<SocketAddr>,
    more: impl IntoIterator<Item = (String, String)>,
) -> Group {
    let mut spec = spec(DEVNODE, program, home, &devnode_file(home));
    if let Some(listen) = listen {
        spec = spec.env(LISTEN, listen.to_string());
    }
    spec.env.extend(more);
    let ready = listen.map_or(Ready::Spawned, |listen| {
        Ready::probe(move || async move { cometbft_height(listen).await.is_some() })
    });
    Group::single(DEVNODE, Tier::Node, ReplicaSpec { spec, ready })
}

/// The application of a real node. The node connects over an inherited socket, and the blocks are stored in
/// a file.
pub(crate) fn application(
    program: impl Into<PathBuf>,
    home: &Home,
    file: &Path,
    socket: Arc<OwnedFd>,
    more: impl IntoIterator<Item = (String, String)>,
) -> Group {
    let mut spec = spec(APPLICATION, program, home, file);
    spec.sockets.push(("abci".to_owned(), socket));
    spec.env.extend(more);
    Group::single(APPLICATION, Tier::Application, ReplicaSpec { spec, ready: Ready::Spawned })
}

fn spec(name: &str, program: impl Into<PathBuf>, home: &Home, file: &Path) -> ProcessSpec {
    let mut spec = ProcessSpec::new(format!("{name}-0"), program, home.log(name, 0))
        .arg(name)
        .env(FILE, file.to_string_lossy());
    spec.grace = GRACE;
    spec
}
