//! `mesh rig watches`: thousands of watches at their limits. Each phase has edges of its own.

mod phases;

use std::time::{Duration, Instant};

use mesh::failure::Failure;
use mesh_problem::error_chain;
use mesh_testbed::poll;

use super::{
    args::SLACK,
    clients::samples::quantile,
    engine::{Drill, Play, Playing, one, phase},
    report::{Column, Report},
    watching::watchers::Watchers,
    world::{Setup, World},
};
use crate::{
    metrics,
    private::PrivateMesh,
    private_chain::NEXT_BLOCK,
    watches::{Blocks, Changes, HeightAt, delays},
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
/// How long watchers watch before anything is measured, and how long they are then measured without a fault.
const WARM_UP: [Duration; 2] = [Duration::from_secs(6), SETTLE];
const STEADY: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(2)];
/// Longest delay of a block's events, and of the effect of a change.
const SETTLE: Duration = Duration::from_secs(1);

pub(super) const DRILL: Drill = Drill {
    name: "watches",
    about: "Tests the limits of watches: clients that never read, \
        a shutdown with thousands of watchers",
    options: &[SLACK],
    play: Play::Phases(Playing {
        world: |_| Setup {
            fill: &[FILL, NEXT_BLOCK, "VACUUM ANALYZE delegations_current"],
            ..Setup::default()
        },
        setup: |_| format!("{PARTIES} lists, a block each {PERIOD:?}"),
        // Each phase has edges of its own.
        becomes_normal: |_| Box::pin(std::future::ready(true)),
        timeout: Duration::from_secs(400),
        phases: &[
            phase("stalled", "Watchers that never read, together with reading ones", |world, _| {
                one(phases::stalled(world))
            }),
            phase("drain", "An edge shuts down with thousands of watchers", |world, _| {
                one(phases::drain(world))
            }),
        ],
    }),
};

impl World<'_> {
    /// Ids of parties; the last ones are those whose lists change seldom.
    async fn parties(&self) -> Result<Vec<String>, Failure> {
        let rows = self.servers.connect("").await?.query(FIND, &[]).await;
        let rows = rows.map_err(|error| Failure::failed(error_chain(&error)))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Starts to write blocks.
    async fn blocks(&self) -> Result<Blocks, Failure> {
        let parties = self.parties().await?;
        let ids = move |height: u64| {
            let (always, seldom) = parties.split_at(PARTIES - SELDOM_CHANGING);
            let turn = |number: &usize| *number as u64 % SELDOM == height % SELDOM;
            let seldom = (0..seldom.len()).filter(turn).map(|number| &seldom[number]);
            always.iter().chain(seldom).cloned().collect()
        };
        Ok(Blocks::write(&self.servers, Some(Changes { statement: CHANGE, ids: Box::new(ids) })))
    }

    /// The paths of lists that change with every block, with this many rows.
    async fn changing_paths(&self, rows: u32) -> Result<Vec<String>, Failure> {
        Ok(self.paths(rows).await?.into_iter().take(PARTIES - SELDOM_CHANGING).collect())
    }

    /// The paths of all lists.
    async fn paths(&self, rows: u32) -> Result<Vec<String>, Failure> {
        let path = |party| format!("/api/v2/delegations?partyId={party}&pagination.first={rows}");
        Ok(self.parties().await?.into_iter().map(path).collect())
    }

    /// Adds the bar that every change was received. Not in the short form, since other tests run concurrently: a
    /// re-read that is 1 s late may skip a block.
    fn none_is_missed(&self, report: &mut Report, missed: usize) {
        if !self.play.short {
            report.bar_none("changes that were not received", missed);
        }
    }
}

/// Number of `watchers` of all lists that receive an event for each block.
fn events_of_a_block(watchers: usize) -> usize {
    let changing = PARTIES - SELDOM_CHANGING + SELDOM_CHANGING / SELDOM as usize;
    watchers * changing / PARTIES
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
            report.bar_none(what, found);
        }
        report.messages.extend(broken.into_iter().chain(older));
    });
}

/// The state of an edge.
#[derive(Clone, Copy, Debug)]
struct EdgeState {
    /// When the metrics were read.
    at: Instant,
    /// Open watches.
    watches: usize,
    /// Watches closed so far because their client read nothing.
    cut: usize,
    /// Resident memory, bytes.
    memory: u64,
}

impl EdgeState {
    /// Reads the state of the edge with this process name.
    ///
    /// # Errors
    /// When it does not answer.
    async fn read(mesh: &PrivateMesh, name: &str) -> Result<Self, Failure> {
        let row = mesh.supervisor.rows().into_iter().find(|row| row.service == name);
        let text = match &row {
            Some(row) => metrics::fetch(row).await,
            None => None,
        };
        let text = text.ok_or_else(|| Failure::failed(format!("{name} tells no metrics")))?;
        let sum = |metric| metrics::sum(&text, metric);
        Ok(Self {
            at: Instant::now(),
            watches: sum("mesh_edge_watches") as usize,
            cut: sum("mesh_edge_watches_cut_total") as usize,
            memory: sum("process_memory_usage_bytes") as u64,
        })
    }

    /// Waits until an edge has this many watches.
    ///
    /// # Errors
    /// When it has not within this time.
    async fn with_watches(
        mesh: &PrivateMesh,
        name: &str,
        count: usize,
        within: Duration,
    ) -> Result<Self, Failure> {
        poll(within, async || {
            let state = Self::read(mesh, name).await?;
            let wrong = || Failure::failed(format!("{name} has {} watches, not {count}", state.watches));
            if state.watches == count { Ok(state) } else { Err(wrong()) }
        })
        .await
    }
}

/// Times from a block's COMMIT to the receipt of its changes.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    /// Changes received.
    events: usize,
    /// Changes that a client did not receive.
    missed: usize,
    p50: Duration,
    p99: Duration,
}

impl Delays {
    /// The delays of the blocks of a period, each of which `watchers` clients must receive.
    fn of(blocks: &Blocks, from: Instant, to: Instant, received: &[HeightAt], watchers: usize) -> Self {
        let written = blocks.written(from, to);
        let delays = delays(&written, received);
        let missed = (written.len() * watchers).saturating_sub(delays.len());
        let [p50, p99] = [0.5, 0.99].map(|share| quantile(delays.clone(), share));
        Self { events: delays.len(), missed, p50, p99 }
    }
}

/// The figures of a phase: watches that were open at the same time, and the events of the measured time.
fn figures(watches: usize, received: &Delays) -> Vec<Column> {
    vec![
        Column::count("watches", "watches", watches),
        Column::count("events", "events", received.events),
        Column::count("missed", "missed", received.missed),
        Column::time("p50 ms", "p50Ms", received.p50),
        Column::time("p99 ms", "p99Ms", received.p99),
    ]
}
