//! The limit of open files, and how many connections fit under it: each connection is an open file, and
//! without a free one a connection cannot even be rejected.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files reserved for the bus, the admin port, logs, and connections that are being rejected.
const RESERVED: usize = 128;

/// Raises the limit to its maximum and returns how many of the `wanted` connections fit under it.
pub(crate) fn connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    let Some(files) = getrlimit(Resource::Nofile).current else { return wanted };
    let fit = connections_under(usize::try_from(files).unwrap_or(usize::MAX));
    if fit < wanted {
        tracing::warn!(files, connections = fit, wanted, "open files are few: fewer connections are taken");
    }
    wanted.min(fit)
}

/// Connections under a limit of open files: at least half of the files.
fn connections_under(files: usize) -> usize {
    (files - RESERVED.min(files / 2)).max(1)
}
