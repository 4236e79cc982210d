//! Playing a drill on a private mesh that is thrown away afterwards: its phases in the order that belongs to the seed,
//! all of them whatever an earlier one found, each within its time.

use std::time::Duration;

use clap::ValueEnum;
use mesh_launcher::RestartRule;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::report::{self, Figures, Report};
use super::{interrupted, write_figures};
use crate::private::PrivateMesh;
use crate::rig::args::{PlayArgs, RunArgs};
use mesh::failure::Failure;
use mesh::signals::Signals;
use mesh::terminal::print_line;

/// Where a drill is played.
pub(super) trait Stage {
    /// The drill's name.
    const DRILL: &'static str;
    /// How long one phase may take; longer ones are broken off and do not hold.
    const PHASE_PATIENCE: Duration;
    /// The drill's own list of phases.
    type Phase: ValueEnum + Copy + PartialEq;
    /// What each of them counts.
    type Figures: Figures;

    /// What it is played with, for the title.
    fn told(&self) -> String;

    /// Waits until all is as usual. Says whether it became so.
    async fn becomes_normal(&self) -> bool;

    /// Goes through one phase.
    async fn play(
        &self,
        phase: Self::Phase,
        random: &mut SmallRng,
    ) -> Result<Vec<Report<Self::Figures>>, Failure>;
}

/// Makes a private mesh for a drill, and leaves nothing of it behind.
pub(super) async fn on_private_mesh(
    rule: RestartRule,
    drill: impl AsyncFnOnce(&PrivateMesh) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut signals = Signals::watch()?;
    let mesh = PrivateMesh::restarting_by(rule)?;
    let outcome = tokio::select! {
        outcome = drill(&mesh) => outcome,
        () = signals.stop() => Err(interrupted()),
    };
    mesh.stop().await;
    outcome
}

/// What dies is started again after the shortest wait of the usual rule, however often it dies: of those that a drill
/// kills again and again nobody would be left otherwise.
pub(super) const RESTARTED_SOON: RestartRule = RestartRule {
    first: Duration::from_millis(200),
    longest: Duration::from_millis(200),
    settled: Duration::from_secs(10),
};

/// Ends a drill: writes down what its runs found, and says which bars do not hold.
pub(super) fn concluded(
    drill: &str,
    args: &RunArgs,
    runs: &[Value],
    broken: &[String],
) -> Result<(), Failure> {
    write_figures(args.json.as_deref(), &json!({ "drill": drill, "runs": runs }))?;
    match broken {
        [] => Ok(()),
        _ => {
            Err(Failure::failed(format!("bars do not hold: {}; look at the lines above", broken.join(", "))))
        }
    }
}

/// Plays the wanted phases of a drill as often as asked, and says which bars do not hold.
pub(super) async fn play<S: Stage>(
    stage: &S,
    args: &PlayArgs,
    wanted: &[S::Phase],
    seed: u64,
) -> Result<(), Failure> {
    let (mut runs, mut broken) = (Vec::new(), Vec::new());
    for run in 0..u64::from(args.run.runs) {
        let seed = seed.wrapping_add(run);
        let reports = play_once(stage, wanted, seed).await;
        println!("{}", report::laid_out(&format!("{}: seed {seed}, {}", S::DRILL, stage.told()), &reports));
        for report in &reports {
            print!("{}", report.lines());
        }
        println!();
        let phases: Vec<Value> = reports.iter().map(Report::json).collect();
        runs.push(json!({ "seed": seed, "with": stage.told(), "slack": args.slack, "phases": phases }));
        let failed = reports.iter().filter(|report| !report.holds());
        broken.extend(failed.map(|report| format!("{} (seed {seed})", report.name)));
    }
    concluded(S::DRILL, &args.run, &runs, &broken)
}

/// Goes through the phases in the order that belongs to a seed.
async fn play_once<S: Stage>(stage: &S, wanted: &[S::Phase], seed: u64) -> Vec<Report<S::Figures>> {
    let mut random = SmallRng::seed_from_u64(seed);
    let order = order(wanted, &mut random);
    let names: Vec<String> = order.iter().map(name_of).collect();
    print_line(&format!("seed {seed}: {}", names.join(", ")));
    let mut reports = Vec::new();
    for (phase, name) in order.into_iter().zip(names) {
        if !stage.becomes_normal().await {
            reports.push(Report::failed(format!("before {name}"), "service is as usual"));
        }
        print_line(&format!("playing {name}"));
        let begun = Instant::now();
        let played = timeout(S::PHASE_PATIENCE, stage.play(phase, &mut random)).await;
        print_line(&format!("{name} took {:.1} s", begun.elapsed().as_secs_f64()));
        match played {
            Ok(Ok(found)) => reports.extend(found),
            Ok(Err(failure)) => reports.push(Report::failed(name, &failure.to_string())),
            Err(_) => {
                reports.push(Report::failed(name, &format!("it is over within {:?}", S::PHASE_PATIENCE)));
            }
        }
    }
    reports
}

/// The phases that are wanted: the first first, the last last, the others shuffled.
fn order<P: ValueEnum + Copy + PartialEq>(wanted: &[P], random: &mut SmallRng) -> Vec<P> {
    let mut order = P::value_variants().to_vec();
    let last = order.len() - 1;
    order[1..last].shuffle(random);
    order.retain(|phase| wanted.is_empty() || wanted.contains(phase));
    order
}

fn name_of<P: ValueEnum>(phase: &P) -> String {
    phase.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::args::ReadsPhase as Phase;

    #[test]
    fn a_seed_gives_one_order_that_begins_steady() {
        let of_seed = |seed, wanted: &[Phase]| order(wanted, &mut SmallRng::seed_from_u64(seed));
        let all = of_seed(7, &[]);
        assert_eq!(all, of_seed(7, &[]));
        assert_eq!((all.len(), all[0], all[7]), (8, Phase::Steady, Phase::Order));
        assert!((0..20).any(|seed| of_seed(seed, &[]) != all));
        assert_eq!(of_seed(7, &[Phase::Nats]), [Phase::Nats]);
    }
}
