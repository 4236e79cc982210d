//! `mesh dist`: packs `mesh` and the services beside it into an archive for machines without Rust. `cargo mesh dist` builds
//! them first.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap_complete::Shell;
use flate2::{Compression, write::GzEncoder};
use mesh_launcher::{services::SERVICES, workspace};
use ring::digest::{SHA256, digest};
use tar::{Builder, HeaderMode};

use crate::{
    cli::completions,
    failure::{Failure, cannot},
    programs,
    terminal::{print, print_line},
};

/// Files of the checkout, and their paths in the archive.
const FILES: [(&str, &str); 7] = [
    ("README.md", "README.md"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("services/edge/assets/console/licences.txt", "licences/console.txt"),
    ("services/edge/assets/docs/LICENSE", "licences/swagger-ui/LICENSE"),
    ("services/edge/assets/docs/NOTICE", "licences/swagger-ui/NOTICE"),
    ("services/edge/assets/docs/swagger-ui-bundle.js.LICENSE.txt", "licences/swagger-ui/bundle.LICENSE.txt"),
];

const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "completions/mesh.bash"),
    (Shell::Fish, "completions/mesh.fish"),
    (Shell::Zsh, "completions/_mesh"),
];

const SUMS: &str = "SHA256SUMS";

/// Writes the archive, and `<archive>.sha256` beside it. Prints the archive's path, and its size on standard error.
pub(crate) fn dist(out: Option<PathBuf>) -> Result<(), Failure> {
    let program = programs::own()?;
    let Some(checkout) = workspace::build_location(&program) else {
        return Err(Failure::failed(
            "`mesh dist` packs the programs of a checkout; run `cargo mesh dist` in one",
        ));
    };
    let programs = programs::services()?;
    let folder = out.unwrap_or_else(|| checkout.target.join("dist"));
    // An archive of another profile must not be taken for a release.
    let profile = if checkout.profile == "release" { "" } else { "-debug" };
    let name = format!("tradewind-{}-{}{profile}", env!("CARGO_PKG_VERSION"), target());
    let archive = folder.join(format!("{name}.tar.gz"));
    let unpacked = pack(&checkout.root, &programs, &folder, &name)
        .map_err(|error| cannot("write the archive", &error))?;
    let size = fs::metadata(&archive).map_or(0, |archive| archive.len());
    print(&archive.display().to_string())?;
    print_line(&format!("{:.1} MB, {:.1} MB unpacked", size as f64 / 1e6, unpacked as f64 / 1e6));
    Ok(())
}

/// Makes the archive in a temporary folder and moves it to its place. Returns the size of its files, bytes.
fn pack(root: &Path, programs: &Path, folder: &Path, name: &str) -> io::Result<u64> {
    fs::create_dir_all(folder)?;
    let temporary = tempfile::tempdir_in(folder)?;
    let content = temporary.path().join(name);
    let mut files = collect(root, programs, &content)?;
    let mut sums = String::new();
    for file in &files {
        sums += &format!("{}  {file}\n", sha256(&content.join(file))?);
    }
    fs::write(content.join(SUMS), sums)?;
    files.push(SUMS.to_owned());

    let file_name = format!("{name}.tar.gz");
    let packed = temporary.path().join(&file_name);
    let mut archive = Builder::new(GzEncoder::new(File::create(&packed)?, Compression::default()));
    // The same programs give the same archive: no times, no owners.
    archive.mode(HeaderMode::Deterministic);
    let mut size = 0;
    for file in &files {
        archive.append_path_with_name(content.join(file), Path::new(name).join(file))?;
        size += fs::metadata(content.join(file))?.len();
    }
    archive.into_inner()?.finish()?.flush()?;
    let sum = format!("{}  {file_name}\n", sha256(&packed)?);
    fs::write(folder.join(format!("{file_name}.sha256")), sum)?;
    fs::rename(packed, folder.join(file_name))?;
    Ok(size)
}

/// Copies all files into a folder. Returns their paths in it, sorted.
fn collect(root: &Path, programs: &Path, content: &Path) -> io::Result<Vec<String>> {
    let names: Vec<&str> = SERVICES.iter().map(|service| service.name).chain(["mesh"]).collect();
    for folder in ["completions", "licences/swagger-ui"] {
        fs::create_dir_all(content.join(folder))?;
    }
    for name in &names {
        fs::copy(programs.join(name), content.join(name))?;
    }
    strip(names.iter().map(|name| content.join(name)))?;
    for (from, to) in FILES {
        fs::copy(root.join(from), content.join(to))?;
    }
    for (shell, to) in COMPLETIONS {
        fs::write(content.join(to), completions(shell))?;
    }
    let others = FILES.iter().map(|(_, to)| *to).chain(COMPLETIONS.map(|(_, to)| to));
    let mut files: Vec<String> = names.into_iter().chain(others).map(str::to_owned).collect();
    files.sort_unstable();
    Ok(files)
}

/// Removes debugging information, by the program of the linker's package. Names of functions stay for backtraces.
fn strip(programs: impl Iterator<Item = PathBuf>) -> io::Result<()> {
    let stripped = Command::new("strip").arg("--strip-debug").args(programs).stdin(Stdio::null()).status();
    match stripped {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("strip failed ({status})"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            print_line("there is no `strip`: the programs keep their debugging information");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// The platform of this program, as rustc names it.
fn target() -> String {
    let system = match std::env::consts::OS {
        "linux" if cfg!(target_env = "musl") => "unknown-linux-musl",
        "linux" => "unknown-linux-gnu",
        "macos" => "apple-darwin",
        other => other,
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// The SHA-256 of a file, in hex.
fn sha256(file: &Path) -> io::Result<String> {
    Ok(hex::encode(digest(&SHA256, &fs::read(file)?)))
}
