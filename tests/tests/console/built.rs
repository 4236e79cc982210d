//! The committed files of the console are what its sources build, and its types are those of the OpenAPI
//! document. Both checks need Node and the console's packages and are skipped without them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use mesh_testbed::assert_generated;
use mesh_tests::{MeshClient, programs::output, say};

fn console() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../services/edge/console")
}

/// Whether the console's packages are installed and Node runs.
fn can_build() -> bool {
    let has_node = Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success());
    let has_packages = console().join("node_modules/esbuild").is_dir();
    if !(has_node && has_packages) {
        say("skipped: Node and the packages of services/edge/console (`npm ci`) are not here");
    }
    has_node && has_packages
}

/// Runs a program of Node in the console's folder.
fn node(arguments: &[&str]) {
    output(Command::new("node").args(arguments).current_dir(console()));
}

#[test]
fn the_generated_bundle_is_that_of_the_sources() {
    if !can_build() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    node(&["build.mjs", folder.path().to_str().unwrap()]);
    let committed = console().join("../assets/console");
    let names = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(folder.path()), names(&committed));
    for name in names(&committed) {
        let made = fs::read_to_string(folder.path().join(&name)).unwrap();
        assert_generated(&format!("services/edge/assets/console/{}", name.display()), &made);
    }
}

#[test]
fn the_sources_pass_the_type_check_and_insert_no_text_as_markup() {
    let sources = console().join("src");
    let views = sources.join("views");
    for folder in [&sources, &views] {
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if !path.extension().is_some_and(|ending| ending == "ts" || ending == "tsx") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for markup in
                ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "new Function"]
            {
                assert!(!text.contains(markup), "{} has {markup}", path.display());
            }
        }
    }
    if can_build() {
        node(&["node_modules/typescript/bin/tsc", "--noEmit"]);
    }
}

/// Formats, names and searches: `services/edge/console/test`.
#[test]
fn the_pure_functions_pass_their_tests() {
    if can_build() {
        node(&["test.mjs"]);
    }
}

#[test]
fn the_lock_file_names_no_registry() {
    let lock = fs::read_to_string(console().join("package-lock.json")).unwrap();
    assert!(lock.contains("\"integrity\"") && !lock.contains("\"resolved\""));
}

#[tokio::test]
async fn the_generated_types_are_those_of_the_document() {
    if !can_build() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (document, types) = (folder.path().join("openapi.json"), folder.path().join("gateway.d.ts"));
    fs::write(&document, MeshClient::fixture().await.get("/openapi.json").await.body).unwrap();
    node(&["types.mjs", document.to_str().unwrap(), types.to_str().unwrap()]);
    assert_generated("services/edge/console/src/gateway.d.ts", &fs::read_to_string(types).unwrap());
}
