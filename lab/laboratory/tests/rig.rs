//! The short forms of the drills: the same phases and bars with less load. Time limits are multiplied by
//! `--slack` (pauses, refusals, recovery), since services are debug builds here and other tests may run
//! concurrently; the greatest age of answers is not changed.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use mesh_launcher::services::SERVICES;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;

/// Held for reading by drills that other drills do not disturb.
static TOGETHER: RwLock<()> = RwLock::new(());
/// Two of them play at the same time: with four on two processors one of them or another missed a time limit.
static PLACES: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];

/// Runs a drill; returns its JSON and its output.
fn play(args: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().join("figures.json");
    let mut rig = Command::new(env!("CARGO_BIN_EXE_laboratory"));
    rig.arg("rig").args(args).arg("--json").arg(&figures);
    let output = rig.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    (serde_json::from_slice(&std::fs::read(figures).unwrap()).unwrap(), stdout.into_owned())
}

/// Runs a drill with these options, in one of two places. A run has so many reports, one of them at least so many
/// bars, and one at least each of these counts.
#[track_caller]
fn plays(place: usize, options: &str, reports: usize, bars: usize, least: &[(&str, u64)]) {
    let _guard = TOGETHER.read();
    let _turn = PLACES[place].lock();
    check(options, reports, bars, least);
}

#[track_caller]
fn check(options: &str, reports: usize, bars: usize, least: &[(&str, u64)]) {
    let (figures, stdout) = play(&options.split(' ').collect::<Vec<_>>());
    for run in figures["runs"].as_array().unwrap() {
        let found: Vec<&Value> = match (&run["phases"], &run["found"]) {
            (Value::Array(phases), _) => phases.iter().collect(),
            (_, Value::Object(_)) => vec![&run["found"]],
            _ => vec![run],
        };
        assert_eq!(found.len(), reports, "{stdout}");
        let most = found.iter().map(|report| report["bars"].as_array().unwrap().len()).max().unwrap();
        assert!(most >= bars, "{most} bars: {stdout}");
        for (name, least) in least {
            let counts = found.iter().chain([&run]).filter_map(|report| report[*name].as_u64());
            assert!(counts.max().unwrap_or_default() >= *least, "{name}: {stdout}");
        }
    }
}

const TRAFFIC: &str = "--rate 20 --downloads 10 --submissions 10 --watchers 40";

/// Drills that mostly wait. Their names come first: tests begin in the order of their names.
mod among_others {
    use super::{TRAFFIC, plays};

    #[test]
    fn reads_go_on_while_replicas_and_servers_do_not() {
        plays(0, "reads --seed 1 --short --rate 100 --slack 3", 4, 5, &[("requests", 100)]);
    }

    /// Without "stalled", whose memory and speed mean little in debug builds.
    #[test]
    fn downloads_go_on_while_workers_are_frozen() {
        plays(0, "kill --seed 1 --short --slack 10 --phase freeze", 1, 4, &[("downloads", 100)]);
    }

    /// Attacks of all kinds but unread watches; those that the contract allows for minutes are not awaited.
    #[test]
    fn reads_go_on_while_others_attack() {
        let phases = "--phase head --phase body --phase unread --phase window --phase idle";
        let options = format!("flood --seed 1 --short --slack 10 --rate 30 {phases}");
        plays(1, &options, 5, 5, &[("requests", 100)]);
    }

    #[test]
    fn every_transaction_has_one_result_while_relays_and_the_node_fail() {
        let least = [("submissions", 240), ("accepted", 51), ("inBlocks", 51), ("refused", 6), ("left", 2)];
        plays(0, "fates --seed 1 --short", 1, 5, &least);
    }

    #[test]
    fn clients_of_every_kind_survive_random_faults() {
        let least = [
            ("actsDone", 6),
            ("reads", 101),
            ("wholeFiles", 6),
            ("submissions", 21),
            ("streams", 40),
            ("events", 101),
        ];
        plays(1, &format!("chaos --seed 1 --short --slack 2 {TRAFFIC}"), 1, 12, &least);
    }
}

mod by_itself {
    use super::{SERVICES, TOGETHER, TRAFFIC, check};

    /// Alone, because it takes all processors.
    #[test]
    fn more_large_lists_than_can_be_served_at_once_wait_for_their_turn() {
        let _guard = TOGETHER.write();
        check("overload --seed 1 --short --slack 2 --phase 256", 1, 5, &[("requests", 100)]);
    }

    /// Alone, because a killed worker of a debug build needs the processors for its start, and a pause of a
    /// download lasts until then.
    #[test]
    fn downloads_go_on_while_workers_are_killed() {
        let _guard = TOGETHER.write();
        check("kill --seed 1 --short --slack 10 --phase kill", 1, 3, &[("downloads", 100)]);
    }

    /// Without the end of stalled watches, for which the contract allows minutes. Alone, because every watcher waits
    /// for the processors each second.
    #[test]
    fn watches_that_are_never_read_do_not_affect_other_clients() {
        let _guard = TOGETHER.write();
        check("flood --seed 1 --short --slack 10 --rate 30 --phase watch", 1, 6, &[("requests", 100)]);
    }

    /// Alone, because its bars have no slack.
    #[test]
    fn a_rolling_restart_fails_no_request() {
        let _guard = TOGETHER.write();
        let least = [("reads", 101), ("downloads", 11), ("broken", 1)];
        let reports = ["steady", "certificate", "all"].len() + SERVICES.len();
        check(&format!("rolling --seed 1 --short --rounds 1 {TRAFFIC}"), reports, 11, &least);
    }

    /// Without a seed, so that each run meets other faults; the title of a failed run names the seed. Alone, because
    /// a bar limits the age of each answer.
    #[test]
    fn every_answer_under_faults_is_what_the_store_held() {
        let least = [("faults", 1), ("states", 11), ("requests", 501)];
        let _guard = TOGETHER.write();
        check("truth --short --rate 200 --slack 4", 1, 10, &least);
    }

    /// One run with the built-in decoder and one with decoders on the bus. Alone, because a bar counts the blocks
    /// that are stored meanwhile.
    #[test]
    fn the_store_has_every_block_once_whatever_is_killed() {
        let options = "ingest --seed 0 --short --runs 2 --kills 25 --slack 4";
        let _guard = TOGETHER.write();
        check(options, 1, 9, &[("kills", 25), ("blocks", 21), ("rows", 201)]);
    }
}

#[test]
fn simulated_replicas_of_ingest_meet_every_fault() {
    let (figures, _) = play(&["order", "--seed", "20000", "--runs", "200"]);
    let count = |name: &str| figures[name].as_u64().unwrap();
    assert_eq!((count("firstSeed"), count("seeds")), (20_000, 200));
    assert!(count("moved") > 50 && count("halts") > 50 && figures["failure"].is_null(), "{figures}");
}
