//! Checks of the machine that a mesh runs on: programs, a writable home, free space on the disk.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use mesh_launcher::{
    home::{Home, HomeError},
    servers::{
        OLDEST_NATS, OLDEST_POSTGRES, Postgres, find_cometbft, find_nats, find_postgres,
        find_postgres_version, how_to_get_cometbft,
    },
};

use super::{
    Running,
    finding::{Checked, Fault},
};

/// Free bytes below which the state is wrong: the database alone stores up to 2 GB of write-ahead log.
const DISK_AT_LEAST: u64 = 500 << 20;
/// Free bytes below which there is a warning.
const DISK_ENOUGH: u64 = 5 << 30;

/// The database server: of the version that made the home's data, else the newest.
pub(super) fn postgres(home: &Home) -> Checked {
    let found = Postgres::made_by(&home.postgres()).and_then(find_postgres_version).or_else(find_postgres);
    of_postgres(found.map(|found| (found.major, found.postgres)))
}

fn of_postgres(found: Option<(u32, PathBuf)>) -> Checked {
    let found = found.map(|(major, program)| format!("PostgreSQL {major} ({})", program.display()));
    found.ok_or_else(|| {
        Fault::wrong(
            format!("there is no PostgreSQL {OLDEST_POSTGRES} or later"),
            "`sudo apt-get install postgresql` on Debian and Ubuntu, `brew install postgresql` on macOS; `mesh up` \
             does it by itself as root or with passwordless sudo",
        )
    })
}

/// The bus server.
pub(super) fn nats_server() -> Checked {
    let (major, minor) = OLDEST_NATS;
    let install = format!(
        "install nats-server {major}.{minor} or later: `sudo apt-get install nats-server` on Debian and Ubuntu, `brew \
         install nats-server` on macOS"
    );
    let Some(program) = find_nats() else { return Err(Fault::wrong("there is no nats-server", install)) };
    let path = program.display();
    let release = Command::new(&program).arg("--version").output();
    let release = release.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let release = release.unwrap_or_else(|error| error.to_string());
    match version(&release) {
        Some(found) if found >= OLDEST_NATS => Ok(format!("{release} ({path})")),
        Some(_) => Err(Fault::wrong(format!("{path} is too old ({release})"), install)),
        None => Err(Fault::wrong(format!("{path} does not say its version ({release})"), install)),
    }
}

/// Parses major and minor version of `nats-server: v2.9.10` or `2.9.10`.
pub(super) fn version(text: &str) -> Option<(u32, u32)> {
    let word = text.split_whitespace().last()?.trim_start_matches('v');
    let mut numbers = word.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The real consensus node, which is optional.
pub(super) fn cometbft() -> String {
    match find_cometbft() {
        Some(program) => program.display().to_string(),
        None => {
            format!("not there; only `mesh up --consensus cometbft` needs it ({})", how_to_get_cometbft())
        }
    }
}

/// The home: a mesh that runs there, or leftovers of an earlier one.
pub(super) fn home(home: &Home, running: &Running) -> Checked {
    let root = home.root().display();
    if running.is_foreign {
        let says = format!("{root} belongs to another user");
        return Err(Fault::wrong(says, "run `mesh doctor` as that user, or give another home with --home"));
    }
    if let Some(why) = &running.silent {
        let says = format!("a mesh seems to run in {root}, but {why}");
        return Err(Fault::wrong(says, "stop its `mesh up` and start it again"));
    }
    if running.is_there() {
        return Ok(format!("{root}; a mesh of {} processes runs there", running.rows.len()));
    }
    if !home.root().exists() {
        return Ok(format!("{root} does not exist yet; `mesh up` creates it"));
    }
    data(home)?;
    let pid = Postgres::running_in(&home.postgres());
    let stale = pid.map(|pid| {
        Fault::warning(
            format!("{root} is stale: a mesh was killed there and its PostgreSQL still runs (process {pid})"),
            "`mesh up` stops it and continues with its data",
        )
    });
    stale.map_or_else(|| Ok(format!("{root}; no mesh runs there")), Err)
}

/// The state, the database and the lock of a home in which no mesh answers.
fn data(home: &Home) -> Result<(), Fault> {
    let root = home.root().display();
    if let Err(error) = home.saved_state() {
        return Err(Fault::wrong(
            error.to_string(),
            "move mesh.json away and start again with the same options, or give another home with --home",
        ));
    }
    let made_by = Postgres::made_by(&home.postgres());
    if let Some(made_by) = made_by.filter(|by| find_postgres_version(*by).is_none()) {
        return Err(Fault::wrong(
            format!("the database in {root} was made by PostgreSQL {made_by}, which is not on this machine"),
            format!("install PostgreSQL {made_by}, or remove {root} to start over"),
        ));
    }
    match home.lock() {
        Err(HomeError::Taken(_)) => Err(Fault::warning(
            format!("{root} is in use, but its mesh does not answer"),
            "a mesh may be starting or stopping: run `mesh doctor` again in a few seconds",
        )),
        Err(error) if home.run().exists() => {
            let next = "make it writable for you, or give another with --home";
            Err(Fault::wrong(error.to_string(), next))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Whether sealed history can be written.
pub(super) fn segments(home: &Home, running: &Running) -> Checked {
    let Some(folder) = segment_folder(home, running) else {
        return Ok("in an object store that is not on this machine".to_owned());
    };
    if running.is_foreign {
        return Ok("unknown: the home belongs to another user".to_owned());
    }
    match tempfile::NamedTempFile::new_in(existing(&folder)) {
        Ok(_) => Ok(format!("{} can be written", folder.display())),
        Err(error) => Err(Fault::wrong(
            format!("{} cannot be written ({})", folder.display(), error.kind()),
            "sealing fails: make the folder writable for the user of `mesh up`",
        )),
    }
}

/// The folder of the segments of the running mesh, else of the home; `None` for an object store.
pub(super) fn segment_folder(home: &Home, running: &Running) -> Option<PathBuf> {
    match running.variable("MESH_HISTORY_URL") {
        Some(url) if url.contains("://") && !url.starts_with("file://") => None,
        Some(place) => Some(PathBuf::from(place.trim_start_matches("file://")).join("segments")),
        None => Some(home.segments()),
    }
}

/// Free space on the disk of the home, or on those of its database and segments where they have less.
pub(super) fn disk(home: &Home, running: &Running) -> Checked {
    // The database of a home that its user cannot reach is elsewhere.
    let database = std::fs::canonicalize(home.postgres()).ok();
    let folders = [Some(home.root().to_owned()), database, segment_folder(home, running)];
    let mut least: Option<(PathBuf, u64)> = None;
    for folder in folders.into_iter().flatten() {
        let folder = existing(&folder);
        let found = rustix::fs::statvfs(&folder).map_err(|error| {
            Fault::warning(
                format!("free space of {} is unknown ({error})", folder.display()),
                "check it with `df`",
            )
        })?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        if least.as_ref().is_none_or(|(_, least)| free < *least) {
            least = Some((folder, free));
        }
    }
    let (folder, free) = least.unwrap_or_default();
    of_disk(&folder, free)
}

fn of_disk(folder: &Path, free: u64) -> Checked {
    let says = format!("{:.1} GB free for {}", free as f64 / 1e9, folder.display());
    let next = "make room, or give a home on another disk with --home";
    match free {
        ..DISK_AT_LEAST => {
            let says = format!("the disk is nearly full: {says}; a mesh with the demo network needs 1 GB");
            Err(Fault::wrong(says, next))
        }
        DISK_AT_LEAST..DISK_ENOUGH => Err(Fault::warning(says, next)),
        _ => Ok(says),
    }
}

/// The folder, or its nearest ancestor that exists.
fn existing(folder: &Path) -> PathBuf {
    let mut above = folder.ancestors();
    above.find(|folder| folder.exists()).unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{
        super::finding::{Finding, State},
        *,
    };

    #[test]
    fn versions_are_read_as_nats_server_prints_them() {
        assert_eq!(version("nats-server: v2.9.10"), Some((2, 9)));
        assert_eq!(version("2.12.1"), Some((2, 12)));
        assert_eq!(version("v2.11.0-RC.1"), Some((2, 11)));
        assert_eq!(version("something"), None);
    }

    #[test]
    fn the_home_of_another_user_is_not_called_broken() {
        let running = Running { silent: Some("denied".to_owned()), is_foreign: true, ..Running::default() };
        let home = Home::at("/proc").unwrap();
        let finding = Finding::of("home", super::home(&home, &running));
        assert!(finding.says.contains("another user") && finding.next.unwrap().contains("as that user"));
        assert_eq!(Finding::of("segments", segments(&home, &running)).state, State::Fine);
    }

    #[test]
    fn without_a_database_server_it_says_how_to_get_one() {
        let finding = Finding::of("postgres", of_postgres(None));
        assert_eq!(finding.state, State::Wrong);
        assert!(finding.next.unwrap().contains("apt-get install postgresql"));
        of_postgres(Some((15, "/x".into()))).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_named_with_what_to_do() {
        let finding = super::super::full_disk(&Home::at("/proc/none").unwrap()).unwrap();
        for part in ["0.0 GB free for /proc", "needs 1 GB", "make room"] {
            assert!(finding.contains(part), "{finding}");
        }
    }

    #[test]
    fn a_disk_is_full_before_its_last_byte() {
        let state = |free| Finding::of("disk", of_disk(Path::new("/x"), free)).state;
        assert_eq!([0, DISK_AT_LEAST - 1].map(state), [State::Wrong; 2]);
        assert_eq!([DISK_AT_LEAST, DISK_ENOUGH - 1].map(state), [State::Warning; 2]);
        assert_eq!(state(DISK_ENOUGH), State::Fine);
    }
}
