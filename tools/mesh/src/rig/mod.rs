//! `mesh rig`: long drills on a private mesh that is thrown away afterwards.
//!
//! Comes in: a drill and a seed, which decides every choice of it. Goes out: a table of what the load met in each phase
//! and whether the bars hold, the same as JSON into a file. All phases are gone through whatever an earlier one found.

mod connection;
mod load;
mod phases;
mod report;
mod samples;
mod stage;

use clap::ValueEnum as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::cli::{Drill, PhaseName, RigArgs};
use crate::failure::Failure;
use crate::private::PrivateMesh;
use crate::signals::Signals;
use crate::up::say;
use report::Report;
use stage::Stage;

/// Greatest seed that is made up here, short enough to be typed.
const LONGEST_SEED: u64 = 1_000_000;

/// Plays a drill and says what did not hold.
pub(crate) async fn rig(args: &RigArgs) -> Result<(), Failure> {
    let Drill::Reads = args.drill;
    let mut signals = Signals::watch()?;
    let mesh = PrivateMesh::new()?;
    let outcome = tokio::select! {
        outcome = play(&mesh, args) => outcome,
        () = signals.stop() => Err(Failure::failed("the drill was interrupted; run it again with its seed")),
    };
    mesh.stop().await;
    outcome
}

async fn play(mesh: &PrivateMesh, args: &RigArgs) -> Result<(), Failure> {
    let seed = args.seed.unwrap_or_else(|| rand::rng().random_range(0..LONGEST_SEED));
    let stage = Stage::set(mesh, args, seed).await?;
    let (mut runs, mut broken) = (Vec::new(), Vec::new());
    for run in 0..u64::from(args.runs) {
        let seed = seed.wrapping_add(run);
        let reports = play_once(&stage, args, seed).await;
        let title = format!("reads: seed {seed}, {} requests a second", args.rate);
        println!("{}", report::laid_out(&title, &reports));
        for report in &reports {
            print!("{}", report.lines());
        }
        println!();
        let phases: Vec<Value> = reports.iter().map(Report::json).collect();
        runs.push(json!({ "seed": seed, "rate": args.rate, "slack": args.slack, "phases": phases }));
        let failed = reports.iter().filter(|report| !report.holds());
        broken.extend(failed.map(|report| format!("{} (seed {seed})", report.name)));
    }
    if let Some(file) = &args.json {
        let figures = json!({ "drill": "reads", "runs": runs });
        std::fs::write(file, format!("{figures:#}\n")).map_err(|error| {
            Failure::failed(format!("cannot write {} ({error}); give another file", file.display()))
        })?;
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("bars do not hold: {}; look at the lines above", broken.join(", "))))
}

/// Goes through the phases in the order that belongs to a seed.
async fn play_once(stage: &Stage<'_>, args: &RigArgs, seed: u64) -> Vec<Report> {
    let mut random = SmallRng::seed_from_u64(seed);
    let order = order(&args.phase, &mut random);
    let names: Vec<String> = order.iter().copied().map(name_of).collect();
    say(&format!("seed {seed}: {}", names.join(", ")));
    let mut reports = Vec::new();
    for (phase, name) in order.into_iter().zip(names) {
        if !stage.becomes_normal().await {
            reports.push(Report::failed(format!("before {name}"), "service is as usual"));
        }
        say(&format!("playing {name}"));
        match phases::play(stage, phase, &mut random).await {
            Ok(found) => reports.extend(found),
            Err(failure) => reports.push(Report::failed(name, &failure.to_string())),
        }
    }
    reports
}

/// The phases that are wanted: the first first, the last last, the others shuffled.
fn order(wanted: &[PhaseName], random: &mut SmallRng) -> Vec<PhaseName> {
    let mut order = PhaseName::value_variants().to_vec();
    let last = order.len() - 1;
    order[1..last].shuffle(random);
    order.retain(|phase| wanted.is_empty() || wanted.contains(phase));
    order
}

fn name_of(phase: PhaseName) -> String {
    phase.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_order_that_begins_steady() {
        let of_seed = |seed, wanted: &[PhaseName]| order(wanted, &mut SmallRng::seed_from_u64(seed));
        let all = of_seed(7, &[]);
        assert_eq!(all, of_seed(7, &[]));
        assert_eq!((all.len(), all[0], all[7]), (8, PhaseName::Steady, PhaseName::Order));
        assert!((0..20).any(|seed| of_seed(seed, &[]) != all));
        assert_eq!(of_seed(7, &[PhaseName::Nats]), [PhaseName::Nats]);
    }
}
