//! Runs drills: creates a private mesh for each of consecutive seeds and removes it afterwards, and runs the phases
//! in an order chosen by the seed, each with a time limit. A failed phase does not stop the run.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use mesh::{
    failure::Failure,
    signals,
    terminal::{print, print_line},
};
use mesh_launcher::{RestartRule, open_files};
use rand::{SeedableRng as _, rngs::SmallRng, seq::SliceRandom as _};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::{
    args::{Number, Options},
    interrupted,
    report::{self, Report},
    seed,
    sweep::{self, Simulate},
    world::{Setup, World},
    write_figures,
};
use crate::private::PrivateMesh;

/// A drill: a row of the table.
pub(crate) struct Drill {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Its own options, besides those of every drill.
    pub(super) options: &'static [Number],
    pub(super) play: Play,
}

pub(super) enum Play {
    /// In phases on one world.
    Phases(Playing),
    /// As a whole, in a private mesh that it fills itself.
    Own(OwnRun),
    /// Without a mesh, seed after seed.
    Seeds(Simulate),
}

/// Plays one seed in a private mesh.
type OwnRun = for<'a> fn(&'a PrivateMesh, &'a Options, u64) -> LocalBoxFuture<'a, Result<Run, Failure>>;

/// The phases of a drill, and their world.
pub(super) struct Playing {
    pub(super) world: fn(&Options) -> Setup,
    /// Short description of topology and traffic, for the title.
    pub(super) setup: fn(&World<'_>) -> String,
    /// Waits until the service is normal; returns whether it is.
    pub(super) becomes_normal: for<'a> fn(&'a World<'a>) -> LocalBoxFuture<'a, bool>,
    /// Time limit of one phase; a longer one is aborted and counts as failed.
    pub(super) timeout: Duration,
    /// The first and the last keep their places, the others run in an order chosen by the seed.
    pub(super) phases: &'static [Phase],
}

pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    run: PhaseRun,
}

type PhaseRun = for<'a> fn(&'a World<'a>, &'a mut SmallRng) -> LocalBoxFuture<'a, Result<Report, Failure>>;

pub(super) const fn phase(name: &'static str, about: &'static str, run: PhaseRun) -> Phase {
    Phase { name, about, run }
}

/// Runs a drill with consecutive seeds, each in a private mesh of its own, prints the results and writes them as JSON.
///
/// # Errors
/// When a bar does not hold, or the drill cannot be run.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let (drill, args) = (options.drill, options.play());
    let first = seed(args.seed);
    open_files::raise();
    let (mut runs, mut broken) = (Vec::new(), Vec::new());
    for number in 0..args.runs {
        let seed = first.wrapping_add(number);
        let run = match &drill.play {
            Play::Seeds(simulate) => return sweep::run(drill.name, first, &args, *simulate).await,
            Play::Own(run) => on_private_mesh(async |mesh| run(mesh, options, seed).await).await,
            Play::Phases(playing) => {
                on_private_mesh(async |mesh| {
                    let world = World::start(mesh, options, (playing.world)(options), seed).await?;
                    Ok(run_phases(drill.name, &world, playing).await)
                })
                .await
            }
        };
        let Run { title, reports, mut json } = run?;
        let lines: String = reports.iter().map(Report::lines).collect();
        print(&format!("{}\n{lines}", report::render_table(&title, &reports)))?;
        json["seed"] = json!(seed);
        runs.push(json);
        let failed = reports.iter().filter(|report| !report.holds());
        broken.extend(failed.map(|report| format!("{} (seed {seed})", report.name)));
    }
    write_figures(args.json.as_deref(), &json!({ "drill": drill.name, "runs": runs }))?;
    match &*broken {
        [] => Ok(()),
        _ => Err(Failure::failed(format!("bars do not hold: {}; see the lines above", broken.join(", ")))),
    }
}

/// Creates a private mesh, runs the drill on it, and removes it.
async fn on_private_mesh(
    drill: impl AsyncFnOnce(&PrivateMesh) -> Result<Run, Failure>,
) -> Result<Run, Failure> {
    let mut signals = signals::watch()?;
    let mesh = PrivateMesh::new(RESTARTED_SOON)?;
    let outcome = tokio::select! {
        outcome = drill(&mesh) => outcome,
        () = signals.stop() => Err(interrupted()),
    };
    mesh.stop().await;
    outcome
}

/// Restarts after the shortest wait of the default rule, without back-off: otherwise the processes that a
/// drill kills repeatedly would be down most of the time.
const RESTARTED_SOON: RestartRule = RestartRule {
    first: Duration::from_millis(200),
    longest: Duration::from_millis(200),
    settled: Duration::from_secs(10),
};

/// The results of one run of a drill.
pub(super) struct Run {
    pub(super) title: String,
    pub(super) reports: Vec<Report>,
    /// The results as JSON, without the seed.
    pub(super) json: Value,
}

/// Runs the wanted phases in the order chosen by the seed.
async fn run_phases(drill: &str, world: &World<'_>, playing: &Playing) -> Run {
    let seed = world.seed;
    let mut random = SmallRng::seed_from_u64(seed);
    let order = order(playing.phases, &world.options.names("phase"), &mut random);
    let names: Vec<&str> = order.iter().map(|phase| phase.name).collect();
    print_line(&format!("seed {seed}: {}", names.join(", ")));
    let mut reports = Vec::new();
    for Phase { name, run, .. } in order {
        if !(playing.becomes_normal)(world).await {
            reports.push(Report::failed(format!("before {name}"), "service is as usual"));
        }
        print_line(&format!("playing {name}"));
        let begun = Instant::now();
        let outcome = timeout(playing.timeout, run(world, &mut random)).await;
        print_line(&format!("{name} took {:.1} s", begun.elapsed().as_secs_f64()));
        reports.push(match outcome {
            Ok(Ok(report)) => report,
            Ok(Err(failure)) => Report::failed(*name, &failure.to_string()),
            Err(_) => Report::failed(*name, &format!("it is over within {:?}", playing.timeout)),
        });
    }
    let phases: Vec<Value> = reports.iter().map(Report::json).collect();
    let setup = (playing.setup)(world);
    let json = json!({ "with": setup, "slack": world.play.slack, "phases": phases });
    Run { title: format!("{drill}: seed {seed}, {setup}"), reports, json }
}

/// The wanted phases: the first and the last keep their places, the others are shuffled.
fn order<'a>(phases: &'a [Phase], wanted: &[&str], random: &mut SmallRng) -> Vec<&'a Phase> {
    let mut order: Vec<&Phase> = phases.iter().collect();
    let last = order.len() - 1;
    order[1..last].shuffle(random);
    order.retain(|phase| wanted.is_empty() || wanted.contains(&phase.name));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_order_between_the_first_and_the_last() {
        let phases = super::super::reads::PHASES;
        let of_seed = |seed, wanted: &[&str]| -> Vec<&str> {
            let order = order(phases, wanted, &mut SmallRng::seed_from_u64(seed));
            order.iter().map(|phase| phase.name).collect()
        };
        let all = of_seed(7, &[]);
        assert_eq!(all, of_seed(7, &[]));
        assert_eq!((all.len(), all[0], all[phases.len() - 1]), (phases.len(), "kill", "nats"));
        assert!((0..20).any(|seed| of_seed(seed, &[]) != all));
        assert_eq!(of_seed(7, &["kill"]), ["kill"]);
    }
}
