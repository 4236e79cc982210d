//! `mesh rig watches`: an edge with a thousand watchers that never read, together with watchers that do.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use mesh::failure::{Failure, cannot};
use mesh_problem::error_chain;
use mesh_testbed::poll;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    time::{interval, sleep},
};

use super::{
    args::{Options, SLACK},
    clients::samples::quantile,
    engine::{Drill, Play, Run},
    report::{Column, Report, in_ms},
    watching::watchers::{OPEN_WITHIN, Over, Watch, Watchers},
    world::{Setup, World},
};
use crate::{
    metrics,
    private::PrivateMesh,
    private_chain::NEXT_BLOCK,
    watches::{Blocks, Changes, HeightAt, OPENED_AT_ONCE, connect, delays, watch_request},
};

/// The edge.
const EDGE: &str = "edge";
/// Parties, each with a list of delegations that changes with every block.
const PARTIES: usize = 100;
/// Rows of an answer, so that it is long.
const ROWS: u32 = 150;
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
/// How long watchers watch before anything is measured, and how long they are then measured without a fault.
const WARM_UP: [Duration; 2] = [Duration::from_secs(6), SETTLE];
const STEADY: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(2)];
/// Longest delay of a block's events, and of the effect of a change.
const SETTLE: Duration = Duration::from_secs(1);
/// Watchers that read, and that do not.
const READERS: [usize; 2] = [100, 20];
const STALLED: [usize; 2] = [1000, 50];
/// Receive buffer of a watcher that does not read.
const NARROW_BYTES: u32 = 4096;
/// The edge closes a watch whose client reads nothing for this long (contract W3).
const STALL: Duration = Duration::from_secs(120);
/// Time until the kernel's buffers are full and the edge has to wait: a few events, one for each block.
const LATER: Duration = Duration::from_secs(10);
/// Greatest memory of the edge for a watch without its event: the connection and the buffers of HTTP.
const CONNECTION_BYTES: u64 = 32 << 10;
/// Greatest p99 of the others, as a multiple of the one before; always accepted up to the first of these times, and
/// never beyond the second.
const P99_TIMES: u32 = 2;
const NO_TIME: Duration = Duration::from_millis(100);
const TOLD_WITHIN: Duration = Duration::from_millis(250);
/// How often the edge's metrics are read.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

pub(super) const DRILL: Drill = Drill {
    name: "watches",
    about: "Opens watches that are never read; other watchers must not notice",
    options: &[SLACK],
    play: Play::Own(|mesh, options, seed| Box::pin(run(mesh, options, seed))),
};

async fn run(mesh: &PrivateMesh, options: &Options, seed: u64) -> Result<Run, Failure> {
    let fill = &[FILL, NEXT_BLOCK, "VACUUM ANALYZE delegations_current"];
    let world = World::start(mesh, options, Setup { fill, ..Setup::default() }, seed).await?;
    let report = play(&world).await?;
    let title = format!("watches: {PARTIES} lists, a block a second");
    Ok(Run { title, json: report.json(), reports: vec![report] })
}

async fn play(world: &World<'_>) -> Result<Report, Failure> {
    let (play, mesh, edge) = (&world.play, world.mesh, world.edges.cached);
    let (count, readers) = (play.either(STALLED), play.either(READERS));
    let rows = world.servers.connect().await?.query(FIND, &[]).await;
    let rows = rows.map_err(|error| Failure::failed(error_chain(&error)))?;
    let parties: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let path = |party| format!("/api/v2/delegations?partyId={party}&pagination.first={ROWS}");
    // All clients watch the same paths, so that the stalled ones add no cached answer.
    let paths: Vec<String> = parties.iter().take(readers).map(path).collect();
    // An edge re-reads once a second (W1), so that it skips no block.
    let changes = Changes { statement: CHANGE, ids: Box::new(move |_| parties.clone()) };
    let blocks = Blocks::write(&world.servers, Some(changes));
    let watchers = Watchers::crowd(edge, Watch::each(&paths, readers, Over::EventStream), (0, 1)).await?;
    sleep(play.either(WARM_UP)).await;
    let steady = {
        let from = Instant::now();
        sleep(play.either(STEADY)).await;
        let to = Instant::now();
        sleep(SETTLE).await;
        Delays::of(&blocks, from, to, &watchers.received_since(from), readers)
    };

    let before = EdgeState::read(mesh).await?;
    let begun = Instant::now();
    let opening = (readers..readers + count).map(async |number| {
        let mut stream = connect(edge, number, Some(NARROW_BYTES)).await?;
        stream.write_all(watch_request(&paths[number % paths.len()], None).as_bytes()).await?;
        Ok::<_, std::io::Error>(stream)
    });
    let opened = stream::iter(opening).buffer_unordered(OPENED_AT_ONCE).try_collect().await;
    let stalled: Vec<TcpStream> = opened.map_err(|error| cannot("open a watch", &error))?;
    let are_open = async || {
        let state = EdgeState::read(mesh).await?;
        let wrong = || Failure::failed(format!("there are {} watches", state.watches));
        if state.watches == readers + count { Ok(state) } else { Err(wrong()) }
    };
    let open = poll(OPEN_WITHIN, are_open).await?;
    let opening = open.at - begun;
    let length = play.either([opening + STALL + LATER, SETTLE]);
    let states = states_until(world, begun + length, count).await?;
    let to = Instant::now();
    sleep(SETTLE).await;
    let received = Delays::of(&blocks, begun, to, &watchers.received_since(begun), readers);

    let last = *states.last().unwrap_or(&open);
    let greatest = states.iter().max_by_key(|state| state.memory).copied().unwrap_or(open);
    let mut report = Report::new(format!("seed {}", world.seed), figures(open.watches, &received));
    let event = watchers.look(|record| record.longest_event) as u64;
    let bound = count as u64 * (event + CONNECTION_BYTES);
    let growth = greatest.memory.saturating_sub(before.memory);
    report.bar(
        format!(
            "memory of stalled watchers: {} KiB, at most {} KiB ({count} answers of {event} bytes and 32 KiB)",
            growth >> 10,
            bound >> 10
        ),
        growth <= bound,
    );
    judge(&watchers, &mut report);
    let slowest = play.bound((steady.p99 * P99_TIMES).clamp(NO_TIME, TOLD_WITHIN));
    let what = format!("p99 of reading watchers, {} before", in_ms(steady.p99));
    report.bar_at_most(&what, received.p99, slowest);
    if play.short {
        report.bar("no watch is closed yet", last.cut == 0);
    } else {
        // In the short form other tests run concurrently: a re-read that is 1 s late may skip a block.
        report.bar_none("changes that were not received", received.missed);
        all_are_cut(&mut report, &states, begun, opening, count);
    }
    report.notes.push(format!(
        "memory: {} MiB before, at most {} MiB, {} MiB at the end",
        before.memory >> 20,
        greatest.memory >> 20,
        last.memory >> 20
    ));
    drop((watchers, stalled));
    Ok(report)
}

/// Adds the bars that hold for every watcher that reads.
fn judge(watchers: &Watchers, report: &mut Report) {
    watchers.look(|record| {
        let ended: Vec<String> = record.failed().into_iter().map(|failure| failure.message).collect();
        report.bar_empty("streams that ended or did not begin", ended);
        let older = record.contradictions(|_, _, _| false);
        report.bar_empty("states that are older than before or sent twice", older);
        report.bar_none("problems sent", record.problems().len());
    });
}

/// The state of the edge.
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
    /// Reads the state.
    ///
    /// # Errors
    /// When the edge does not answer.
    async fn read(mesh: &PrivateMesh) -> Result<Self, Failure> {
        let row = mesh.supervisor.rows().into_iter().find(|row| row.service == EDGE);
        let text = match &row {
            Some(row) => metrics::fetch(row).await,
            None => None,
        };
        let text = text.ok_or_else(|| Failure::failed("the edge has no metrics"))?;
        let sum = |metric| metrics::sum(&text, metric);
        Ok(Self {
            at: Instant::now(),
            watches: sum("mesh_edge_watches") as usize,
            cut: sum("mesh_edge_watches_cut_total") as usize,
            memory: sum("process_memory_usage_bytes") as u64,
        })
    }
}

/// The states of the edge until all watches are closed, or until this time.
async fn states_until(world: &World<'_>, end: Instant, count: usize) -> Result<Vec<EdgeState>, Failure> {
    let (mut states, mut ticks) = (Vec::new(), interval(ASK_INTERVAL));
    while Instant::now() < end && states.last().is_none_or(|state: &EdgeState| state.cut < count) {
        ticks.tick().await;
        states.push(EdgeState::read(world.mesh).await?);
    }
    Ok(states)
}

/// Adds the bars on when the stalled watches are closed; they were opened in sequence.
fn all_are_cut(report: &mut Report, states: &[EdgeState], begun: Instant, opening: Duration, count: usize) {
    let cut = states.last().map_or(0, |state| state.cut);
    report.bar(format!("watches closed and counted: {cut} of {count}"), cut == count);
    let at = |least: usize| states.iter().find(|state| state.cut >= least).map(|state| state.at - begun);
    let (first, last) = (at(1).unwrap_or_default(), at(count).unwrap_or(Duration::MAX));
    report.bar(
        format!("the first one is closed after {}, at least {}", in_ms(first), in_ms(STALL)),
        first >= STALL,
    );
    report.bar_at_most("the last one is closed", last, opening + STALL + LATER);
    report.notes.push(format!("all were open after {}", in_ms(opening)));
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

/// The figures of a run: watches that were open at the same time, and the events of the measured time.
fn figures(watches: usize, received: &Delays) -> Vec<Column> {
    vec![
        Column::count("watches", "watches", watches),
        Column::count("events", "events", received.events),
        Column::count("missed", "missed", received.missed),
        Column::time("p50 ms", "p50Ms", received.p50),
        Column::time("p99 ms", "p99Ms", received.p99),
    ]
}
