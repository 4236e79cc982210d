//! The decoder in Python of `examples/decoder-python`: finds or installs a Python that can run it, and runs its tests.

use std::{
    env,
    path::{Path, PathBuf},
};

use mesh_launcher::{process_group, servers::install_debian_package, workspace::build_location};
use tokio::{process::Command, time::timeout};

use super::{WITHIN, succeeds};
use crate::{
    failure::{Failure, failed},
    terminal::print_line,
};

const EXAMPLE: &str = "examples/decoder-python";
/// The variable by which tests find the Python that runs the decoder.
pub(super) const PYTHON_VARIABLE: &str = "MESH_TEST_DECODER_PYTHON";

/// Finds a Python with the decoder's requirements, or installs them below the target folder of the checkout `root`.
///
/// # Errors
/// The reason why there is none, as a clause.
pub(super) async fn find_or_install_python(root: &Path, log: &Path) -> Result<PathBuf, String> {
    let built = env::current_exe().ok().and_then(|program| build_location(&program));
    let folder = built.map_or_else(|| root.join("target"), |location| location.target).join("decoder-python");
    let own = folder.join("bin").join("python3");
    for python in [own.clone(), PathBuf::from("python3")] {
        let mut import = Command::new(&python);
        import.args(["-c", "import nats.micro"]);
        if succeeds(import).await {
            return Ok(python);
        }
    }
    print_line(&format!("==> decoder: pip install -r {EXAMPLE}/requirements.txt"));
    let make_folder = || {
        let mut command = Command::new("python3");
        command.args(["-m", "venv"]).arg(&folder);
        command
    };
    if !succeeds(make_folder()).await {
        install_debian_package("python3-venv", log)
            .await
            .map_err(|why| format!("python3 with venv is not there and cannot be installed ({why})"))?;
        if !succeeds(make_folder()).await {
            return Err(format!("python3 cannot make a virtual environment in {}", folder.display()));
        }
    }
    let mut install = Command::new(&own);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    install.arg(root.join(EXAMPLE).join("requirements.txt"));
    if !succeeds(install).await {
        return Err("pip cannot install nats-py".to_owned());
    }
    Ok(own)
}

/// Decodes the recorded blocks and compares the rows.
pub(super) async fn test(root: &Path, python: &Path) -> Result<(), Failure> {
    let args = ["-B", "-m", "unittest", "discover", EXAMPLE];
    print_line(&format!("==> decoder: python3 {}", args.join(" ")));
    let mut command = Command::new(python);
    command.args(args).current_dir(root);
    match timeout(WITHIN, process_group::run(command)).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        _ => Err(failed!("the decoder's tests failed; `python3 {}` repeats this step alone", args.join(" "))),
    }
}
