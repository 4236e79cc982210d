//! Finds out whether this program runs from a checkout with its sources, or is installed.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A folder into which cargo builds binaries of this workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildLocation {
    /// The root of the workspace.
    pub root: PathBuf,
    /// The target folder of cargo.
    pub target: PathBuf,
    /// The cargo profile of the running program: `dev`, `release` or another one by its name.
    pub profile: String,
}

/// Finds the workspace: above the running program, else above the current folder.
pub fn root() -> Option<PathBuf> {
    let program = std::env::current_exe().ok();
    let current = std::env::current_dir().ok();
    [program, current].into_iter().flatten().find_map(|start| above(&start))
}

/// Where the running program was built; `None` when it is not in a cargo target folder.
pub fn build_location(program: &Path) -> Option<BuildLocation> {
    let folder = program.parent()?;
    let target = folder.parent()?;
    if !target.join("CACHEDIR.TAG").is_file() || !folder.join(".cargo-lock").is_file() {
        return None;
    }
    let profile = match folder.file_name()?.to_str()? {
        "debug" => "dev",
        name => name,
    };
    let root = above(folder).or_else(|| above(&std::env::current_dir().ok()?))?;
    Some(BuildLocation { root, target: target.to_owned(), profile: profile.to_owned() })
}

fn above(start: &Path) -> Option<PathBuf> {
    start.ancestors().find(|folder| is_root(folder)).map(Path::to_owned)
}

fn is_root(folder: &Path) -> bool {
    folder.join("tools/mesh/Cargo.toml").is_file()
        && fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|text| text.contains("[workspace]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_target_folder_knows_its_workspace_and_profile_and_an_installed_one_is_not_built() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("tools/mesh")).unwrap();
        fs::write(folder.path().join("tools/mesh/Cargo.toml"), "[package]\n").unwrap();
        fs::write(folder.path().join("Cargo.toml"), "[workspace]\n").unwrap();
        let target = folder.path().join("target");
        fs::create_dir_all(target.join("debug")).unwrap();
        fs::write(target.join("CACHEDIR.TAG"), "").unwrap();
        fs::write(target.join("debug/.cargo-lock"), "").unwrap();
        let location = build_location(&target.join("debug/mesh")).unwrap();
        assert_eq!(location.root, folder.path());
        assert_eq!(location.target, target);
        assert_eq!(location.profile, "dev");
        fs::create_dir_all(folder.path().join("bin")).unwrap();
        assert_eq!(build_location(&folder.path().join("bin/mesh")), None);
    }
}
