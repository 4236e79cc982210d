//! `mesh rig watches`: thousands of watches at their limits. Each phase has edges of its own.

mod drain;
mod edge;
mod figures;
mod full;
mod stalled;

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use figures::{Figures, Report};
use mesh::{failure::Failure, terminal::print_line};
use mesh_launcher::RestartRule;
use mesh_problem::error_chain;
use parking_lot::Mutex;
use rand::rngs::SmallRng;

use super::{
    args::{PlayArgs, WatchesArgs, WatchesPhase},
    engine::{PhasedDrill, on_private_mesh, run_phases},
    seed,
    watching::watchers::Watchers,
};
use crate::{
    empty_blocks::NEXT_BLOCK,
    private::{Layout, PrivateMesh, Servers},
    watches::blocks::{Blocks, Changes},
};

/// Parties, each with a list of delegations that is watched.
const PARTIES: usize = 100;
/// The lists of this many last parties change with every fifth block, a fifth of them with each block; the other
/// lists change with every block.
const SELDOM_CHANGING: usize = 20;
const SELDOM: u64 = 5;
/// Rows of a long answer, and of a short one.
const LONG_ROWS: u32 = 150;
const SHORT_ROWS: u32 = 1;
/// Creates delegations of each party.
const FILL: &str = "INSERT INTO delegations_current
    SELECT encode(sha256(('party' || party)::bytea), 'hex'), node, 1, 1000000000, repeat('a5', 32),
        timestamptz '2023-01-01 00:00:00+00', 1
    FROM generate_series(0, 99) AS party, (
        SELECT encode(sha256(('node' || n)::bytea), 'hex') FROM generate_series(1, 199) AS n
        UNION ALL SELECT repeat('f', 64)
    ) AS nodes (node)";
/// Changes the first row of the lists of these parties: newer nodes come first.
const CHANGE: &str = "UPDATE delegations_current SET amount = $1::text::numeric
    WHERE party_id = ANY($2) AND node_id = repeat('f', 64)";
/// The parties in their order.
const FIND: &str = "SELECT encode(sha256(('party' || n)::bytea), 'hex') FROM generate_series(0, 99) AS n";
/// The time between two blocks: an edge re-reads at this rate (W1), so that it skips none.
const PERIOD: Duration = Duration::from_secs(1);
const WARM_UP: Duration = Duration::from_secs(6);
/// Longest delay of a block's events, and of the effect of a change.
const SETTLE: Duration = Duration::from_secs(1);

/// Runs the drill.
///
/// # Errors
/// When a bar does not hold, or the drill cannot be run.
pub(super) async fn drill(args: &WatchesArgs) -> Result<(), Failure> {
    mesh_launcher::open_files::raise();
    on_private_mesh(RestartRule::default(), async |mesh| {
        let seed = seed(args.play.run.seed);
        let fixture = Fixture::start(mesh, &args.play).await?;
        run_phases(&fixture, &args.play, &args.phase, seed).await
    })
    .await
}

/// The running mesh.
struct Fixture<'a> {
    mesh: &'a PrivateMesh,
    play: &'a PlayArgs,
    servers: Servers,
    /// Ids of parties; the last ones are those whose lists change seldom.
    parties: Vec<String>,
    /// Edges that were started in an earlier run.
    edges: Mutex<HashMap<&'static str, SocketAddr>>,
}

impl PhasedDrill for Fixture<'_> {
    const NAME: &'static str = "watches";
    const PHASE_TIMEOUT: Duration = Duration::from_secs(400);
    type Phase = WatchesPhase;
    type Figures = Figures;

    fn setup(&self) -> String {
        format!("{PARTIES} lists, a block each {PERIOD:?}")
    }

    /// Each phase has edges of its own.
    async fn becomes_normal(&self) -> bool {
        true
    }

    async fn run(&self, phase: WatchesPhase, _: &mut SmallRng) -> Result<Vec<Report>, Failure> {
        let report = match phase {
            WatchesPhase::Stalled => stalled::run(self).await,
            WatchesPhase::Full => full::run(self).await,
            WatchesPhase::Drain => drain::run(self).await,
        };
        Ok(vec![report?])
    }
}

impl<'a> Fixture<'a> {
    /// Starts servers and services, and fills the lists.
    async fn start(mesh: &'a PrivateMesh, play: &'a PlayArgs) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        print_line("filling in rows");
        servers.execute("fill in rows", &[FILL, NEXT_BLOCK, "VACUUM ANALYZE delegations_current"]).await?;
        mesh.start_services(&servers, &Layout::default()).await?;
        let rows = servers.connect("").await?.query(FIND, &[]).await;
        let rows = rows.map_err(|error| Failure::failed(error_chain(&error)))?;
        let parties = rows.iter().map(|row| row.get(0)).collect();
        Ok(Self { mesh, play, servers, parties, edges: Mutex::default() })
    }

    /// Starts an edge of a phase.
    async fn edge(&self, name: &'static str, env: Vec<(String, String)>) -> Result<SocketAddr, Failure> {
        let known = self.edges.lock().get(name).copied();
        if let Some(edge) = known {
            self.mesh.start_all(name).await?;
            self.mesh.ready(&[name]).await?;
            return Ok(edge);
        }
        let edge = self.mesh.start_edge_with(&self.servers, name, env, None).await?;
        self.edges.lock().insert(name, edge);
        Ok(edge)
    }

    /// Starts to write blocks.
    async fn blocks(&self) -> Result<Blocks, Failure> {
        let parties = self.parties.clone();
        let ids = move |height: u64| {
            let (always, seldom) = parties.split_at(PARTIES - SELDOM_CHANGING);
            let turn = |number: &usize| *number as u64 % SELDOM == height % SELDOM;
            let seldom = (0..seldom.len()).filter(turn).map(|number| &seldom[number]);
            always.iter().chain(seldom).cloned().collect()
        };
        Blocks::write(&self.servers, Changes { period: PERIOD, statement: CHANGE, ids: Box::new(ids) }).await
    }

    /// The paths of lists that change with every block, with this many rows.
    fn changing_paths(&self, rows: u32) -> Vec<String> {
        self.paths(rows).into_iter().take(PARTIES - SELDOM_CHANGING).collect()
    }

    /// Number of `watchers` of all lists that receive an event for each block.
    fn events_of_a_block(watchers: usize) -> usize {
        let changing = PARTIES - SELDOM_CHANGING + SELDOM_CHANGING / SELDOM as usize;
        watchers * changing / PARTIES
    }

    /// The paths of all lists.
    fn paths(&self, rows: u32) -> Vec<String> {
        let path = |party| format!("/api/v2/delegations?partyId={party}&pagination.first={rows}");
        self.parties.iter().map(path).collect()
    }

    /// How long watchers watch before anything is measured.
    fn warm_up(&self) -> Duration {
        self.play.either(WARM_UP, SETTLE)
    }

    /// Adds the bar that every change was received. Not in the short form, since other tests run concurrently: a
    /// re-read that is 1 s late may skip a block.
    fn none_is_missed(&self, report: &mut Report) {
        let missed = report.figures.received.missed;
        if !self.play.run.short {
            report.bar(format!("changes that were not received: {missed}, at most 0"), missed == 0);
        }
    }

    /// Adds the bars that hold for every client.
    fn judge(watchers: &Watchers, report: &mut Report) {
        watchers.look(|record| {
            let broken = record.broken().into_iter().map(|failure| failure.message).collect::<Vec<_>>();
            let older = record.contradictions(|_, _, _| false);
            for (what, found) in [
                ("streams that broke or did not begin", broken.len()),
                ("states that are older than before or sent twice", older.len()),
                ("heights sent twice", record.heights_sent_twice()),
                ("problems sent", record.problems().len()),
            ] {
                report.bar(format!("{what}: {found}, at most 0"), found == 0);
            }
            report.messages.extend(broken.into_iter().chain(older));
        });
    }

    /// How long watchers are measured without a fault.
    fn steady(&self) -> Duration {
        self.play.either(Duration::from_secs(20), Duration::from_secs(2))
    }
}
