//! Finds the programs of PostgreSQL, nats-server and CometBFT on this machine.

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// The oldest major version of PostgreSQL that the mesh runs on.
pub const OLDEST_POSTGRES: u32 = 15;
/// The oldest nats-server that the mesh is tested with: Debian 12's, as major and minor version.
pub const OLDEST_NATS: (u32, u32) = (2, 9);

/// Folders that hold one subfolder per installed version of PostgreSQL: the folder, how a subfolder's name
/// begins, and where in it the programs are.
const VERSIONED: [(&str, &str, &str); 5] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
    ("/Library/PostgreSQL", "", "bin"),
];

/// Folders outside a usual user's `PATH` where servers are installed.
const SERVER_FOLDERS: [&str; 6] = [
    "/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/usr/local/pgsql/bin", "/opt/homebrew/bin",
];

/// The programs of one installed PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresPrograms {
    /// The major version.
    pub major: u32,
    /// Makes a new database cluster.
    pub initdb: PathBuf,
    /// The server.
    pub postgres: PathBuf,
}

/// Finds PostgreSQL 15 or later: the one on the `PATH`, or else the newest installed.
pub fn find_postgres() -> Option<PostgresPrograms> {
    let on_path = search_path().iter().find_map(|folder| programs_in(folder));
    on_path.or_else(|| installed_elsewhere().into_iter().max_by_key(|programs| programs.major))
}

/// Finds the PostgreSQL of one major version.
pub fn find_postgres_version(major: u32) -> Option<PostgresPrograms> {
    let on_path = search_path().into_iter().filter_map(|folder| programs_in(&folder));
    on_path.chain(installed_elsewhere()).find(|programs| programs.major == major)
}

/// Finds nats-server.
pub fn find_nats() -> Option<PathBuf> {
    find_program("nats-server", SERVER_FOLDERS)
}

/// Finds CometBFT: on the `PATH`, or where `mesh test` installs it below a cargo target folder.
pub fn find_cometbft() -> Option<PathBuf> {
    let program = env::current_exe().unwrap_or_default();
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    find_program("cometbft", target.map(super::cometbft_folder))
}

/// Finds a program: on the `PATH`, or else in the `usual` folders.
pub(super) fn find_program(name: &str, usual: impl IntoIterator<Item: Into<PathBuf>>) -> Option<PathBuf> {
    let folders = search_path().into_iter().chain(usual.into_iter().map(Into::<PathBuf>::into));
    folders.map(|folder| folder.join(name)).find(|file| is_program(file))
}

fn search_path() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

fn installed_elsewhere() -> Vec<PostgresPrograms> {
    let mut folders: BTreeSet<PathBuf> = SERVER_FOLDERS.iter().map(PathBuf::from).collect();
    for (root, beginning, programs) in VERSIONED {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let versions = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(beginning));
        folders.extend(versions.map(|version| version.path().join(programs)));
    }
    folders.iter().filter_map(|folder| programs_in(folder)).collect()
}

/// Takes both programs from the folder of the resolved server link, because links in `folder` may lead to two
/// different versions.
fn programs_in(folder: &Path) -> Option<PostgresPrograms> {
    let postgres = folder.join("postgres");
    if !is_program(&postgres) {
        return None;
    }
    let postgres = fs::canonicalize(postgres).ok()?;
    let initdb = postgres.with_file_name("initdb");
    if !is_program(&initdb) {
        return None;
    }
    let version = Command::new(&postgres).arg("--version").output().ok()?;
    let major = major_version(&String::from_utf8_lossy(&version.stdout))?;
    (major >= OLDEST_POSTGRES).then_some(PostgresPrograms { major, initdb, postgres })
}

/// Parses the major version of `postgres (PostgreSQL) 15.18 (Debian …)`, also of `17beta1`.
fn major_version(output: &str) -> Option<u32> {
    let number = output.split("(PostgreSQL)").nth(1)?.trim_start();
    let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number[..digits].parse().ok()
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake_postgres(folder: &Path, version: &str, with_initdb: bool) {
        fs::create_dir_all(folder).unwrap();
        let names: &[&str] = if with_initdb { &["postgres", "initdb"] } else { &["postgres"] };
        for name in names {
            // Written by a shell: with the file open in this process, a child forked by another test could
            // inherit it, and running it would fail with ETXTBSY.
            let write = "printf '#!/bin/sh\\necho \"postgres (PostgreSQL) %s\"\\n' \"$1\" > \"$2\" && chmod 755 \"$2\"";
            let mut shell = Command::new("/bin/sh");
            let written = shell.args(["-c", write, "sh", version]).arg(folder.join(name)).status();
            assert!(written.unwrap().success());
        }
    }

    #[test]
    fn versions_are_read_as_postgres_prints_them() {
        assert_eq!(major_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(major_version("postgres (PostgreSQL) 17beta1\n"), Some(17));
        assert_eq!(major_version("postgres (PostgreSQL) 9.6.24"), Some(9));
        assert_eq!(major_version("something else"), None);
    }

    #[test]
    fn a_link_leads_to_the_folder_that_holds_both_programs() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        fake_postgres(&home.join("16/bin"), "16.1", true);
        fs::create_dir(home.join("bin")).unwrap();
        std::os::unix::fs::symlink(home.join("16/bin/postgres"), home.join("bin/postgres")).unwrap();
        let found = programs_in(&home.join("bin")).unwrap();
        assert_eq!((found.major, found.initdb), (16, home.join("16/bin/initdb")));
    }

    #[test]
    fn an_old_or_incomplete_postgres_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        fake_postgres(&home.path().join("old"), "14.9", true);
        fake_postgres(&home.path().join("half"), "16.1", false);
        assert_eq!(programs_in(&home.path().join("old")), None);
        assert_eq!(programs_in(&home.path().join("half")), None);
        assert_eq!(programs_in(&home.path().join("none")), None);
    }
}
