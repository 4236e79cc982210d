//! The short forms of the drills: the same phases and bars with less load. Time limits are multiplied by
//! `--slack` (pauses, refusals, recovery, statements of disconnected clients), since services are debug
//! builds here and other tests may run concurrently; the greatest age of answers is not changed.
#![allow(clippy::unwrap_used)]

use std::{path::Path, process::Command};

use mesh_launcher::services::SERVICES;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

/// Lets only one drill run at a time, since drills measure times and use all cores.
fn exclusive() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock()
}

/// Runs a drill from copied binaries, as if installed, so that it builds nothing; returns its JSON and its
/// output.
fn play(args: &[&str]) -> (Value, String) {
    let _guard = exclusive();
    let folder = tempfile::tempdir().unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_laboratory"));
    // Copied by another process: a child that another test forks meanwhile would inherit the file open for
    // writing, and such a file cannot be executed (ETXTBSY).
    for name in ["laboratory", "mesh"].into_iter().chain(SERVICES.iter().map(|service| service.name)) {
        let program = built.with_file_name(name);
        assert!(program.exists(), "there is no {}: run `cargo build --workspace` first", program.display());
        assert!(Command::new("cp").arg(program).arg(folder.path()).status().unwrap().success());
    }
    let figures = folder.path().join("figures.json");
    let mut rig = Command::new(folder.path().join("laboratory"));
    rig.arg("rig").args(args).arg("--json").arg(&figures);
    let output = rig.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    (serde_json::from_slice(&std::fs::read(figures).unwrap()).unwrap(), stdout.into_owned())
}

#[test]
fn reads_go_on_while_replicas_and_servers_do_not() {
    let (figures, stdout) = play(&["reads", "--seed", "1", "--short", "--rate", "100", "--slack", "2"]);
    let phases = figures["runs"][0]["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 10, "{stdout}");
    for phase in phases {
        assert!(phase["requests"].as_u64().unwrap() >= 50, "{phase}");
        assert!(!phase["bars"].as_array().unwrap().is_empty(), "{phase}");
    }
}

/// The phases that take seconds. Without "stalled", whose memory and speed mean little in debug builds, and
/// without "large", which takes too long.
#[test]
fn downloads_go_on_while_workers_servers_and_segments_do_not() {
    let phases = ["steady", "kill", "freeze", "nats", "postgres", "damage", "scale"];
    let mut args = vec!["kill", "--seed", "1", "--short", "--slack", "10"];
    phases.iter().for_each(|phase| args.extend(["--phase", phase]));
    let (figures, stdout) = play(&args);
    let played = figures["runs"][0]["phases"].as_array().unwrap();
    assert_eq!(played.len(), phases.len(), "{stdout}");
    for phase in played {
        let count = |name: &str| phase[name].as_u64().unwrap();
        assert!(count("downloads") >= 40 && count("wrong") + count("late") == 0, "{phase}");
        assert!(!phase["bars"].as_array().unwrap().is_empty(), "{phase}");
    }
}

/// Attacks of most kinds; those that the contract allows for minutes are not awaited.
#[test]
fn reads_go_on_while_others_attack() {
    let phases = ["head", "body", "unread", "window", "idle", "reset", "rate", "slow", "files"];
    let mut args = vec!["flood", "--seed", "1", "--short", "--slack", "10"];
    phases.iter().for_each(|phase| args.extend(["--phase", phase]));
    let (figures, stdout) = play(&args);
    let played = figures["runs"][0]["phases"].as_array().unwrap();
    assert_eq!(played.len(), phases.len(), "{stdout}");
    for phase in played {
        assert!(phase["requests"].as_u64().unwrap() >= 100, "{phase}");
        assert!(phase["bars"].as_array().unwrap().len() >= 2, "{phase}");
    }
}

/// Without the end of stalled watches, for which the contract allows minutes.
#[test]
fn watches_at_their_limits_do_not_affect_other_clients() {
    let (figures, stdout) = play(&["watches", "--seed", "1", "--short", "--slack", "4"]);
    let played = figures["runs"][0]["phases"].as_array().unwrap();
    let watches: Vec<_> = played.iter().map(|phase| phase["watches"].as_u64().unwrap()).collect();
    assert_eq!(watches, [70, 60, 200], "{stdout}");
    for phase in played {
        // The short form of the last one is over before the next block.
        assert!(phase["phase"] == "drain" || phase["events"].as_u64().unwrap() >= 20, "{phase}");
        assert!(phase["bars"].as_array().unwrap().len() >= 9, "{phase}");
    }
}

#[test]
fn every_transaction_has_one_result_while_relays_and_the_node_fail() {
    let (figures, stdout) = play(&["fates", "--seed", "1", "--short"]);
    let run = &figures["runs"][0];
    let count = |name: &str| run[name].as_u64().unwrap();
    assert!(count("submissions") >= 240 && count("accepted") > 50 && count("inBlocks") > 50, "{stdout}");
    assert!(count("refused") > 5 && count("left") > 1, "{stdout}");
    assert_eq!(run["bars"].as_array().unwrap().len(), 9, "{stdout}");
}

#[test]
fn a_rolling_restart_fails_no_request() {
    let traffic = ["--rate", "20", "--downloads", "10", "--submissions", "10", "--watchers", "40"];
    let (figures, stdout) =
        play(&[&["rolling", "--seed", "1", "--short", "--rounds", "1"], &traffic[..]].concat());
    let phases = figures["runs"][0]["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 1 + SERVICES.len() + 1, "{stdout}");
    let all = &phases[phases.len() - 1];
    let count = |name: &str| all[name].as_u64().unwrap();
    assert!(count("reads") > 100 && count("downloads") > 10 && count("broken") > 0, "{stdout}");
    assert_eq!(all["bars"].as_array().unwrap().len(), 11, "{stdout}");
}

#[test]
fn random_faults_cause_no_wrong_answer() {
    let traffic = ["--rate", "20", "--downloads", "10", "--submissions", "10", "--watchers", "40"];
    let (figures, stdout) =
        play(&[&["chaos", "--seed", "1", "--short", "--slack", "2"], &traffic[..]].concat());
    let run = &figures["runs"][0];
    let count = |name: &str| run["found"][name].as_u64().unwrap();
    assert_eq!((count("actsDone"), run["acts"].as_array().unwrap().len()), (6, 6), "{stdout}");
    assert!(count("reads") > 100 && count("wholeFiles") > 5 && count("submissions") > 20, "{stdout}");
    assert!(count("streams") >= 40 && count("events") > 100, "{stdout}");
    assert_eq!(run["found"]["bars"].as_array().unwrap().len(), 12, "{stdout}");
}

/// Without a seed, so that each run meets other faults; the title of a failed run names the seed.
#[test]
fn every_answer_under_faults_is_what_the_store_held() {
    let (figures, stdout) = play(&["truth", "--short", "--rate", "200"]);
    let run = &figures["runs"][0];
    let count = |name: &str| run[name].as_u64().unwrap();
    assert!(count("faults") >= 1 && count("states") > 20, "{stdout}");
    assert!(run["found"]["requests"].as_u64().unwrap() > 500, "{stdout}");
    assert_eq!(run["found"]["bars"].as_array().unwrap().len(), 9, "{stdout}");
}

/// One run with the built-in decoder and one with decoders on the bus.
#[test]
fn the_store_has_every_block_once_whatever_is_killed() {
    let (figures, stdout) =
        play(&["ingest", "--seed", "0", "--short", "--runs", "2", "--kills", "25", "--slack", "4"]);
    for run in figures["runs"].as_array().unwrap() {
        let count = |name: &str| run[name].as_u64().unwrap();
        assert!(count("kills") >= 25 && count("blocks") > 20 && count("rows") > 200, "{stdout}");
        assert!(run["bars"].as_array().unwrap().len() >= 9, "{stdout}");
    }
}

fn sweep(drill: &str, seed: &str, runs: &str) -> Value {
    let _guard = exclusive();
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().join("figures.json");
    let mut rig = Command::new(env!("CARGO_BIN_EXE_laboratory"));
    rig.args(["rig", drill, "--seed", seed, "--runs", runs, "--json"]).arg(&figures);
    let output = rig.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&std::fs::read(figures).unwrap()).unwrap()
}

#[test]
fn simulated_streams_meet_every_fault() {
    let figures = sweep("streams", "20000", "1000");
    let count = |name: &str| figures[name].as_u64().unwrap();
    assert_eq!((count("firstSeed"), count("seeds"), count("whole") + count("broken")), (20_000, 1000, 1000));
    assert!(count("again") > 100 && figures["failure"].is_null(), "{figures}");
}

#[test]
fn simulated_replicas_of_ingest_meet_every_fault() {
    let figures = sweep("order", "20000", "200");
    let count = |name: &str| figures[name].as_u64().unwrap();
    assert_eq!((count("firstSeed"), count("seeds")), (20_000, 200));
    assert!(count("moved") > 50 && count("halts") > 50 && figures["failure"].is_null(), "{figures}");
}
