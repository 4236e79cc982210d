//! Where the attacks are played: a private mesh with rows to read, and a load beside each attack.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use mesh::{failure::Failure, terminal::print_line};
use rustix::process::{Resource, getrlimit};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use crate::{
    private::{Layout, PrivateMesh, Servers},
    rig::{
        args::FloodArgs,
        clients::{
            load::Load,
            samples::{Figures, Report, Sample, quantile},
        },
        questions::{Questions, start_filled},
        report::in_ms,
    },
};

/// Attackers of a kind.
const CROWD: usize = 5000;
const CROWD_SHORT: usize = 200;
/// Open files that this process needs beside its attackers.
const OTHER_FILES: usize = 1000;
/// How long the load is looked at before an attack.
const STEADY: Duration = Duration::from_secs(10);
const STEADY_SHORT: Duration = Duration::from_secs(2);
/// How many times its steady time the load may take meanwhile ...
const TIMES: u32 = 2;
/// ... and what is no time: less than this is the scheduler's, the more so where nothing is optimised.
const NO_TIME: Duration = Duration::from_millis(10);
const NO_TIME_SHORT: Duration = Duration::from_millis(100);
/// How long a load may take to become usual.
const PATIENCE: Duration = Duration::from_secs(30);

/// Everything that a phase needs.
pub(super) struct Stage<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) servers: Servers,
    /// The usual edge.
    pub(super) edge: SocketAddr,
    /// Whether it is the short form.
    pub(super) is_short: bool,
    /// Requests a second of the load.
    pub(super) rate: u32,
    /// How many attack at the same time.
    pub(super) crowd: usize,
    database: Client,
    seed: u64,
    /// Times that each bar of time is stretched.
    slack: u32,
}

/// The load of a phase, and what it was like before the attack.
pub(super) struct Beside {
    load: Load,
    steady: Duration,
    from: Duration,
}

impl<'a> Stage<'a> {
    /// Starts everything.
    pub(super) async fn set(mesh: &'a PrivateMesh, args: &FloodArgs, seed: u64) -> Result<Self, Failure> {
        let (servers, database) = start_filled(mesh).await?;
        let edges = mesh.start_services(&servers, &Layout::default()).await?;
        let (is_short, slack) = (args.play.run.short, args.play.slack);
        let files = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
        let wanted = if is_short { CROWD_SHORT } else { CROWD };
        // Idle ones are twice as many.
        let crowd = wanted.min(files.saturating_sub(OTHER_FILES) / 2).max(1);
        if crowd < wanted {
            print_line(&format!("only {files} files may be open: {crowd} attackers of a kind"));
        }
        let edge = edges.cached;
        Ok(Self { mesh, servers, edge, is_short, rate: args.rate, crowd, database, seed, slack })
    }

    /// A bar of time, stretched as asked.
    pub(super) fn bound(&self, time: Duration) -> Duration {
        time * self.slack
    }

    /// One of two figures: that of the long form, or that of the short one.
    pub(super) fn either<T>(&self, long: T, short: T) -> T {
        if self.is_short { short } else { long }
    }

    /// Begins a load at an edge, and looks at it for a while.
    pub(super) async fn load(&self, edge: SocketAddr) -> Result<Beside, Failure> {
        let mix = Questions::find(&self.database).await?.mix(edge, edge);
        let load = Load::start(mix, self.rate, self.seed)?;
        let deadline = Instant::now() + PATIENCE;
        // Connections are opened and answers come into memory.
        loop {
            let from = load.now();
            sleep(Duration::from_secs(1)).await;
            let to = load.now();
            load.settled(to).await;
            let samples = load.samples(from, to);
            if !samples.is_empty() && samples.iter().all(Sample::is_fine) {
                break;
            }
            if Instant::now() > deadline {
                return Err(Failure::failed("the load is not answered even without an attack"));
            }
        }
        let from = load.now();
        sleep(self.either(STEADY, STEADY_SHORT)).await;
        let to = load.now();
        load.settled(to).await;
        let samples = load.samples(from, to);
        Ok(Beside { steady: p99(&samples), from: load.now(), load })
    }

    /// Ends a load, with the bars that hold for all attacks.
    pub(super) async fn report(&self, name: &str, beside: Beside) -> Report {
        let Beside { load, steady, from } = beside;
        let to = load.now();
        load.settled(to).await;
        let samples = load.samples(from, to);
        let mut report = Report::of(name, Figures::of(&samples, from, to));
        report.none_fails();
        let no_time = self.either(NO_TIME, NO_TIME_SHORT);
        let bound = self.bound((steady * TIMES).max(no_time));
        report.keeps(
            &format!("p99 of the others, {} without the attack", in_ms(steady)),
            p99(&samples),
            bound,
        );
        let texts: BTreeMap<String, (Duration, usize)> = load.said(from, to);
        for (text, (first, count)) in texts {
            let first = in_ms(first.saturating_sub(from));
            report.said.push(format!("{count} times, first after {first}: {text}"));
        }
        report
    }

    /// Each phase has a load of its own, which waits until it is served as usual.
    #[allow(clippy::unused_async)] // the frame waits for it
    pub(super) async fn becomes_normal(&self) -> bool {
        true
    }
}

fn p99(samples: &[Sample]) -> Duration {
    quantile(samples.iter().map(|sample| sample.took).collect(), 0.99)
}
