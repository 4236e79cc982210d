//! The limit of open files, and how many connections fit under it. Each connection is an open file, and a process that has
//! no more of them cannot even refuse.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are kept for what is not a connection of a client: the bus, the admin port, logs, and connections that are
/// being turned away.
const KEPT: usize = 128;

/// Raises the limit as far as this process may, and gives how many of so many connections fit under it.
pub(crate) fn connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    let Some(files) = getrlimit(Resource::Nofile).current else { return wanted };
    let fit = fitting(usize::try_from(files).unwrap_or(usize::MAX));
    if fit < wanted {
        tracing::warn!(files, connections = fit, wanted, "open files are few: fewer connections are taken");
    }
    wanted.min(fit)
}

/// How many connections fit under a limit of open files; at least half of them are for clients.
fn fitting(files: usize) -> usize {
    (files - KEPT.min(files / 2)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_are_always_kept_back() {
        assert_eq!([20_000, 1024, 256, 64, 1, 0].map(fitting), [19_872, 896, 128, 32, 1, 1]);
    }
}
