//! The command line of the laboratory: exit codes, and error messages of one line.

use std::process::Command;

#[track_caller]
fn fails(args: &[&str], code: i32, parts: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_laboratory")).args(args).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(text.trim_end().lines().count(), 1, "{args:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{args:?}: {text}");
    }
}

#[test]
fn wrong_usage_is_one_sentence_and_code_2() {
    fails(&["bench", "nothing"], 2, &["nothing"]);
    fails(&["bench", "store", "--section", "hot"], 2, &["hot", "this one has store"]);
    fails(&["bench", "reads", "--seconds", "0"], 2, &["--seconds"]);
    fails(&["bench", "reads", "--section", "width"], 2, &["width"]);
    fails(&["bench", "reads", "--section", "splice"], 2, &["splice", "another suite", "point, hop"]);
    fails(
        &["bench", "exports", "--section", "ledger", "--section", "hot"],
        2,
        &["hot", "splice, first-byte"],
    );
    fails(&["bench", "exports", "--megabytes", "0"], 2, &["--megabytes"]);
    fails(&["rig"], 2, &["reads", "kill", "fates", "ingest", "streams"]);
    fails(&["rig", "ingest", "--kills", "0"], 2, &["--kills"]);
    fails(&["rig", "nothing"], 2, &["nothing"]);
    fails(&["rig", "reads", "--rate", "0"], 2, &["--rate"]);
    fails(&["rig", "streams", "--runs", "0"], 2, &["--runs"]);
    fails(&["rig", "streams", "--phase", "kill"], 2, &["--phase"]);
}

#[test]
fn mesh_hands_its_arguments_on_to_the_laboratory() {
    let mesh = std::path::Path::new(env!("CARGO_BIN_EXE_laboratory")).with_file_name("mesh");
    assert!(mesh.exists(), "there is no {}: run `cargo build --workspace` first", mesh.display());
    for (args, part) in [(["bench", "--help"], "--section"), (["rig", "--help"], "chaos")] {
        let output = Command::new(&mesh).args(args).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("Usage: mesh") && text.contains(part), "{text}");
    }
    assert_eq!(Command::new(&mesh).args(["rig", "nothing"]).output().unwrap().status.code(), Some(2));
}
