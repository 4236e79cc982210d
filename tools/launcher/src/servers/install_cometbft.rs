//! Installs CometBFT where there is Go.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{process::Command, time::timeout};

use super::{
    cometbft::{COMETBFT_PACKAGE, cometbft_folder},
    find::{find_cometbft, find_program},
};
use crate::{process_group, workspace::build_location};

/// Timeout of the installation: minutes of compiling on a slow machine, after a download of the sources.
const WITHIN: Duration = Duration::from_secs(8 * 60);
/// Where Go usually is when it is not on the path.
const USUAL_GO: &str = "/usr/local/go/bin";

/// Finds CometBFT, or installs it below the target folder of the checkout `root`. `progress` is called with a
/// message before slow steps.
///
/// # Errors
/// The reason why it is not there, as a clause.
pub async fn find_or_install_cometbft(root: &Path, progress: impl Fn(&str)) -> Result<PathBuf, String> {
    if let Some(found) = find_cometbft() {
        return Ok(found);
    }
    let go = find_program("go", [USUAL_GO]);
    let go = go.ok_or("CometBFT is not on the PATH, and there is no Go to install it with")?;
    let built = env::current_exe().ok().and_then(|program| build_location(&program));
    let folder = cometbft_folder(&built.map_or_else(|| root.join("target"), |location| location.target));
    let program = folder.join("cometbft");
    if program.is_file() {
        return Ok(program);
    }
    progress(&format!("==> CometBFT: go install {COMETBFT_PACKAGE}"));
    let mut command = Command::new(go);
    command
        .args(["install", COMETBFT_PACKAGE])
        .env("GOBIN", &folder)
        .env("GOFLAGS", flags())
        .current_dir(root);
    match timeout(WITHIN, process_group::run(command)).await {
        Ok(Ok(status)) if status.success() => Ok(program),
        Ok(Ok(_)) => Err("go could not install CometBFT".to_owned()),
        Ok(Err(error)) => Err(format!("go could not be started ({error})")),
        Err(_) => Err(format!("go did not install CometBFT within {} minutes", WITHIN.as_secs() / 60)),
    }
}

/// Linker flags that keep paths of this machine out of the program.
fn flags() -> OsString {
    let mut flags = env::var_os("GOFLAGS").unwrap_or_default();
    flags.push(" -trimpath");
    flags
}
