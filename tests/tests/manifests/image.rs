//! Runs the shell steps of the Dockerfile on a copy of the build context, without a container builder.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, SystemTime},
};

use mesh_tests::programs::output;

use crate::manifests::{path, read};

/// Folders at the root of the builder's image that the steps use.
const ROOT_FOLDERS: [&str; 5] = ["/target", "/programs", "/root-of", "/home-of", "/tmp/program"];

/// A cargo that prints its arguments and creates the files that a build would.
const CARGO: &str = include_str!("cargo.sh");

/// The commands of a stage's `RUN` steps, without their mounts.
fn steps(stage: &str) -> Vec<String> {
    let dockerfile = read("Dockerfile").replace("\\\n", " ");
    let of_stage = dockerfile.lines().skip_while(|line| !line.ends_with(&format!(" AS {stage}")));
    let of_stage = of_stage.skip(1).take_while(|line| !line.starts_with("FROM "));
    let runs = of_stage.filter_map(|line| line.strip_prefix("RUN "));
    runs.map(|run| run.split(' ').filter(|word| !word.starts_with("--mount=")).collect::<Vec<_>>().join(" "))
        .collect()
}

/// Runs a step in `source`; folders at the root of the image are in `root`.
fn run(step: &str, source: &Path, root: &Path) {
    let mut step = step.to_owned();
    for folder_at_root in ROOT_FOLDERS {
        step = step.replace(folder_at_root, &format!("{}{folder_at_root}", root.display()));
    }
    let path = format!("{}:{}", root.join("bin").display(), std::env::var("PATH").unwrap());
    output(Command::new("sh").args(["-ec", &step]).current_dir(source).env("PATH", path));
}

/// Copies the build context: `.dockerignore` excludes everything but its `!` lines.
fn copy_build_context(to: &Path) {
    let ignore = read(".dockerignore");
    assert!(ignore.lines().any(|line| line == "*"), "everything is left out that is not named");
    for named in ignore.lines().filter_map(|line| line.strip_prefix('!')) {
        let target = to.join(named);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let mut copy = Command::new("cp");
        assert!(copy.arg("-r").arg(path(named)).arg(&target).status().unwrap().success(), "{named}");
    }
}

#[test]
fn the_build_context_is_a_complete_workspace_and_changed_sources_are_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let (source, root) = (folder.path().join("src"), folder.path().join("root"));
    copy_build_context(&source);
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--locked", "--no-deps", "--format-version=1"]).current_dir(&source);
    let metadata_output: serde_json::Value = serde_json::from_str(&output(&mut metadata)).unwrap();

    let built = built_programs(folder.path(), &source, &root);
    let known = |name: &str| {
        let packages = metadata_output["packages"].as_array().unwrap().iter();
        let mut targets = packages.flat_map(|package| package["targets"].as_array().unwrap());
        targets.any(|target| target["name"] == name && target["kind"][0] == "bin")
    };
    let dockerfile = read("Dockerfile");
    for program in built {
        assert!(known(&program), "there is no program {program}");
        assert!(root.join("programs").join(&program).is_file(), "{program} is not copied");
        let copies = dockerfile.contains(&format!("COPY --from=build /programs/{program} "));
        assert!(copies, "{program} is in no image");
    }
    // The next stage collects the files that the programs need at run time.
    fs::create_dir_all(root.join("tmp")).unwrap();
    fs::copy("/bin/true", root.join("tmp/program")).unwrap();
    let gather = steps("found").pop().unwrap();
    if Path::new("/etc/ssl/certs/ca-certificates.crt").is_file() {
        run(&gather, &source, &root);
        let users = fs::read_to_string(root.join("root-of/etc/passwd")).unwrap();
        assert!(users.starts_with("mesh:x:65532:"), "{users}");
        let mut libraries = Command::new("find");
        let libraries = output(libraries.arg(root.join("root-of")).args(["-name", "libc.so*"]));
        assert!(!libraries.is_empty(), "the C library is not there");
    }
}

/// Runs the build stage with a stand-in for cargo; returns the programs that it was called to build.
fn built_programs(folder: &Path, source: &Path, root: &Path) -> Vec<String> {
    let called = folder.join("called");
    let cargo = CARGO.replace("CALLED", &called.to_string_lossy());
    let cargo = cargo.replace("TARGET", &root.join("target").to_string_lossy());
    fs::create_dir_all(root.join("bin")).unwrap();
    // Written by a child process: if this process had the file open for writing while another test forks,
    // running it would fail with "text file busy".
    let script = folder.join("cargo");
    fs::write(&script, cargo).unwrap();
    let installed = Command::new("install").arg("-m755").arg(&script).arg(root.join("bin/cargo")).status();
    assert!(installed.unwrap().success());
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let changed_source = source.join("services/query/src/main.rs");
    fs::File::options().append(true).open(&changed_source).unwrap().set_modified(old).unwrap();
    for step in steps("build") {
        run(&step, source, root);
    }
    let modified = fs::metadata(&changed_source).unwrap().modified().unwrap();
    assert!(modified > old, "an older build would be taken");

    let called = fs::read_to_string(called).unwrap();
    let words = called.split_whitespace().skip_while(|word| *word != "--bin");
    words.filter(|word| *word != "--bin").map(str::to_owned).collect()
}
