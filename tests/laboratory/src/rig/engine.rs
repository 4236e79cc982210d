//! Runs drills: creates a private mesh and removes it afterwards, repeats the run with consecutive seeds, and
//! runs the phases in an order chosen by the seed, each with a time limit. A failed phase does not stop the
//! run.

use std::time::Duration;

use clap::ValueEnum;
use mesh::{failure::Failure, signals, terminal::print_line};
use mesh_launcher::RestartRule;
use rand::{SeedableRng as _, rngs::SmallRng, seq::SliceRandom as _};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::{
    interrupted,
    report::{self, Figures, Report},
    write_figures,
};
use crate::{
    private::PrivateMesh,
    rig::args::{PlayArgs, RunArgs},
};

/// A drill that consists of phases.
pub(super) trait PhasedDrill {
    /// The drill's name.
    const NAME: &'static str;
    /// Time limit of one phase; a longer one is aborted and counts as failed.
    const PHASE_TIMEOUT: Duration;
    /// The phases of the drill.
    type Phase: ValueEnum + Copy + PartialEq;
    /// The figures of a phase.
    type Figures: Figures;

    /// Short description of topology and traffic, for the title.
    fn setup(&self) -> String;

    /// Waits until the service is normal; returns whether it is.
    async fn becomes_normal(&self) -> bool;

    /// Runs one phase.
    async fn run(
        &self,
        phase: Self::Phase,
        random: &mut SmallRng,
    ) -> Result<Vec<Report<Self::Figures>>, Failure>;
}

/// Creates a private mesh, runs the drill on it, and removes it.
pub(super) async fn on_private_mesh<T>(
    rule: RestartRule,
    drill: impl AsyncFnOnce(&PrivateMesh) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut signals = signals::watch()?;
    let mesh = PrivateMesh::with_restart_rule(rule)?;
    let outcome = tokio::select! {
        outcome = drill(&mesh) => outcome,
        () = signals.stop() => Err(interrupted()),
    };
    mesh.stop().await;
    outcome
}

/// Restarts after the shortest wait of the default rule, without back-off: otherwise the processes that a
/// drill kills repeatedly would be down most of the time.
pub(super) const RESTARTED_SOON: RestartRule = RestartRule {
    first: Duration::from_millis(200),
    longest: Duration::from_millis(200),
    settled: Duration::from_secs(10),
};

/// The results of one run of a drill.
pub(super) struct Run<F> {
    /// Title of its table.
    pub(super) title: String,
    /// The reports of its phases.
    pub(super) reports: Vec<Report<F>>,
    /// The results as JSON, without the seed.
    pub(super) json: Value,
}

/// Runs a drill `args.runs` times with consecutive seeds, prints the results and writes them as JSON.
///
/// # Errors
/// When a run cannot be finished, or a bar does not hold.
pub(super) async fn repeat<F: Figures>(
    drill: &str,
    args: &RunArgs,
    first_seed: u64,
    mut run: impl AsyncFnMut(u64) -> Result<Run<F>, Failure>,
) -> Result<(), Failure> {
    let (mut runs, mut broken) = (Vec::new(), Vec::new());
    for number in 0..u64::from(args.runs) {
        let seed = first_seed.wrapping_add(number);
        let Run { title, reports, mut json } = run(seed).await?;
        println!("{}", report::render_table(&title, &reports));
        for report in &reports {
            print!("{}", report.lines());
        }
        println!();
        json["seed"] = json!(seed);
        runs.push(json);
        let failed = reports.iter().filter(|report| !report.holds());
        broken.extend(failed.map(|report| format!("{} (seed {seed})", report.name)));
    }
    write_figures(args.json.as_deref(), &json!({ "drill": drill, "runs": runs }))?;
    match &*broken {
        [] => Ok(()),
        _ => Err(Failure::failed(format!("bars do not hold: {}; see the lines above", broken.join(", ")))),
    }
}

/// Runs the wanted phases of a drill `args.run.runs` times with consecutive seeds.
///
/// # Errors
/// When a bar does not hold, or the figures cannot be written.
pub(super) async fn run_phases<S: PhasedDrill>(
    drill: &S,
    args: &PlayArgs,
    wanted: &[S::Phase],
    first_seed: u64,
) -> Result<(), Failure> {
    repeat(S::NAME, &args.run, first_seed, async |seed| {
        let reports = run_once(drill, wanted, seed).await;
        let phases: Vec<Value> = reports.iter().map(Report::json).collect();
        let title = format!("{}: seed {seed}, {}", S::NAME, drill.setup());
        let json = json!({ "with": drill.setup(), "slack": args.slack, "phases": phases });
        Ok(Run { title, reports, json })
    })
    .await
}

/// Runs the phases in the order chosen by the seed.
async fn run_once<S: PhasedDrill>(drill: &S, wanted: &[S::Phase], seed: u64) -> Vec<Report<S::Figures>> {
    let mut random = SmallRng::seed_from_u64(seed);
    let order = order(wanted, &mut random);
    let names: Vec<String> = order.iter().map(name_of).collect();
    print_line(&format!("seed {seed}: {}", names.join(", ")));
    let mut reports = Vec::new();
    for (phase, name) in order.into_iter().zip(names) {
        if !drill.becomes_normal().await {
            reports.push(Report::failed(format!("before {name}"), "service is as usual"));
        }
        print_line(&format!("playing {name}"));
        let begun = Instant::now();
        let outcome = timeout(S::PHASE_TIMEOUT, drill.run(phase, &mut random)).await;
        print_line(&format!("{name} took {:.1} s", begun.elapsed().as_secs_f64()));
        match outcome {
            Ok(Ok(found)) => reports.extend(found),
            Ok(Err(failure)) => reports.push(Report::failed(name, &failure.to_string())),
            Err(_) => {
                reports.push(Report::failed(name, &format!("it is over within {:?}", S::PHASE_TIMEOUT)));
            }
        }
    }
    reports
}

/// The wanted phases: the first and the last keep their places, the others are shuffled.
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
