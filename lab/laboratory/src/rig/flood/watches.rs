//! Phase "watch": watches of long answers that are never read, beside watchers that read.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use mesh::failure::{Failure, cannot};
use mesh_testbed::poll;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    time::{interval, sleep},
};

use super::{
    TIMES,
    attackers::{NARROW_BYTES, STALLED},
};
use crate::{
    rig::{
        clients::{
            load::Load,
            memory::{ProcessMemory, while_watched},
            samples::quantile,
        },
        report::{Report, in_ms},
        watching::watchers::{OPEN_WITHIN, Over, Watch, Watchers},
        world::World,
    },
    watches::{Blocks, Changes, OPENED_AT_ONCE, connect, delays, watch_request},
};

const EDGE: &str = "edge";
/// Rows of an answer, so that it is long.
const ROWS: u32 = 150;
/// Creates 200 delegations of each of a hundred parties.
pub(super) const FILL: &str = include_str!("../../../sql/delegations.sql");
/// Changes the first row of the lists of these parties: newer nodes come first.
const CHANGE: &str = "UPDATE delegations_current SET amount = $1::text::numeric
    WHERE party_id = ANY($2) AND node_id = repeat('f', 64)";
/// How long watchers watch before anything is measured, and how long they are then measured without a fault.
const WARM_UP: [Duration; 2] = [Duration::from_secs(6), SETTLE];
const STEADY: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(2)];
/// Longest delay of a block's events, and of the effect of a change.
const SETTLE: Duration = Duration::from_secs(1);
/// Watchers that read, each of another party, and that do not.
const READERS: [usize; 2] = [100, 20];
const UNREAD: [usize; 2] = [1000, 50];
/// Time until the kernel's buffers are full and the edge has to wait: a few events, one for each block.
const LATER: Duration = Duration::from_secs(10);
/// Greatest memory of the edge for a watch without its event: the connection and the buffers of HTTP.
const CONNECTION_KIB: usize = 32;
/// Greatest p99 of the others, as a multiple of the one before; always accepted up to the first of these times, and
/// never beyond the second.
const NO_TIME: Duration = Duration::from_millis(100);
const TOLD_WITHIN: Duration = Duration::from_millis(250);
/// How often the edge's metrics are read.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

/// Opens watches that are never read; watchers that read, and other clients, must not notice.
pub(super) async fn unread_watches(world: &World<'_>) -> Result<Report, Failure> {
    let (play, edge) = (&world.play, world.edges.cached);
    let readers = play.either(READERS);
    let parties: Vec<String> = (1..=readers).map(|party| format!("{party:064x}")).collect();
    let path = |party| format!("/api/v2/delegations?partyId={party}&pagination.first={ROWS}");
    // All clients watch the same paths, so that the stalled ones add no cached answer.
    let paths: Vec<String> = parties.iter().map(path).collect();
    // An edge re-reads once a second (W1), so that it skips no block.
    let changes = Changes { statement: CHANGE, ids: Box::new(move |_| parties.clone()) };
    let blocks = Blocks::write(&world.servers, Some(changes));
    let mix = world.read_requests.clone().mix(edge, edge);
    let load = Load::start(mix, world.options.number("rate"), world.seed)?;
    let watchers = Watchers::crowd(edge, Watch::each(&paths, readers, Over::EventStream), (0, 1)).await?;
    sleep(play.either(WARM_UP)).await;
    // The p99 of the blocks since this time, and the number of changes that a watcher did not receive.
    let seen = async |from: Instant| {
        let to = Instant::now();
        sleep(SETTLE).await;
        let written = blocks.written(from, to);
        let delays = delays(&written, &watchers.received_since(from));
        let missed = (written.len() * readers).saturating_sub(delays.len());
        (quantile(delays, 0.99), missed)
    };
    let begun = Instant::now();
    sleep(play.either(STEADY)).await;
    let (steady, _) = seen(begun).await;
    let (begun, mut memory) = (Instant::now(), ProcessMemory::of_all(world.mesh, &[EDGE]));
    let unread = while_watched(&mut memory, Unread::open(world, &paths)).await?;
    let (p99, missed) = seen(begun).await;

    let (_, figures, mut report) = load.report("watches unread", Duration::ZERO).await;
    figures.none_fails(&mut report);
    let longest_kib = watchers.look(|record| record.longest_event).div_ceil(1024);
    let (count, grown_kib) = (unread.streams.len(), memory.iter().map(ProcessMemory::grown).sum::<u64>());
    let bound_kib = (count * (longest_kib + CONNECTION_KIB)) as u64;
    report.bar(
        format!("memory of {count} watches of {longest_kib} KiB: {grown_kib} KiB, at most {bound_kib}"),
        grown_kib <= bound_kib,
    );
    judge(&watchers, &mut report);
    let slowest = play.bound((steady * TIMES).clamp(NO_TIME, TOLD_WITHIN));
    report.bar_at_most(&format!("p99 of reading watchers, {} before", in_ms(steady)), p99, slowest);
    if !play.short {
        // In the short form other tests run concurrently: a re-read that is 1 s late may skip a block.
        report.bar_none("changes that were not received", missed);
    }
    unread.are_closed(play.short, &mut report);
    Ok(report)
}

/// Adds the bars that hold for every watcher that reads.
fn judge(watchers: &Watchers, report: &mut Report) {
    watchers.look(|record| {
        let misses = record.misses().into_iter().map(|miss| miss.message).collect();
        report.bar_empty("streams of readers that ended or did not begin, and problems sent", misses);
        let older = record.contradictions(|_, _, _| false);
        report.bar_none_of("states that are older than before or sent twice", older.len(), record.answers());
        report.messages.extend(older);
    });
}

/// Watches that are not read.
struct Unread {
    streams: Vec<TcpStream>,
    /// How long it took to open them.
    opening: Duration,
    /// How many the edge had closed because their client read nothing, by the time from the first opening.
    closed: Vec<(Duration, usize)>,
}

impl Unread {
    /// Opens watches, and waits until the edge has closed all, or should have; not in the short form.
    async fn open(world: &World<'_>, paths: &[String]) -> Result<Self, Failure> {
        let (begun, edge) = (Instant::now(), world.edges.cached);
        let [count, readers] = [UNREAD, READERS].map(|counts| world.play.either(counts));
        let metric = async |name| world.mesh.metric(EDGE, name).await.unwrap_or_default() as usize;
        let opening = (readers..readers + count).map(async |number| {
            let mut stream = connect(edge, number, Some(NARROW_BYTES)).await?;
            stream.write_all(watch_request(&paths[number % paths.len()], None).as_bytes()).await?;
            Ok::<_, std::io::Error>(stream)
        });
        let opened = stream::iter(opening).buffer_unordered(OPENED_AT_ONCE).try_collect().await;
        let streams = opened.map_err(|error| cannot("open a watch", &error))?;
        let are_open = async || match metric("mesh_edge_watches").await {
            watches if watches == readers + count => Ok(()),
            watches => Err(Failure::failed(format!("there are {watches} watches"))),
        };
        poll(OPEN_WITHIN, are_open).await?;
        let opening = begun.elapsed();
        let end = world.play.either([opening + STALLED + LATER, opening + SETTLE]);
        let (mut closed, mut ticks) = (Vec::<(Duration, usize)>::new(), interval(ASK_INTERVAL));
        while begun.elapsed() < end && closed.last().is_none_or(|(_, closed)| *closed < count) {
            ticks.tick().await;
            closed.push((begun.elapsed(), metric("mesh_edge_watches_cut_total").await));
        }
        Ok(Self { streams, opening, closed })
    }

    /// Adds the bars on when the watches are closed.
    fn are_closed(&self, is_short: bool, report: &mut Report) {
        let (count, all) = (self.closed.last().map_or(0, |(_, closed)| *closed), self.streams.len());
        if is_short {
            return report.bar("no watch is closed yet", count == 0);
        }
        report.bar(format!("watches closed and counted: {count} of {all}"), count == all);
        let at =
            |least: usize| self.closed.iter().find(|(_, closed)| *closed >= least).map(|(after, _)| *after);
        let (first, last) = (at(1).unwrap_or_default(), at(all).unwrap_or(Duration::MAX));
        report.bar(
            format!("the first one is closed after {}, at least {}", in_ms(first), in_ms(STALLED)),
            first >= STALLED,
        );
        report.bar_at_most("the last one is closed", last, self.opening + STALLED + LATER);
    }
}
