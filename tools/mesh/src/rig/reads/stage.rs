//! Where a drill is played: a private mesh with two replicas of what is drilled, rows to read, a block every second,
//! and the load that never stops.

use std::sync::Arc;
use std::time::Duration;

use mesh_demo::{Plan, write_history};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use super::Report;
use super::load::{Asked, Class, Load};
use super::samples::{Figures, Sample};
use crate::cli::ReadsArgs;
use crate::devnode;
use crate::failure::{Failure, with_causes};
use crate::private::{Edges, Layout, PrivateMesh, Servers, cannot, this_program};
use crate::rig::report::in_ms;
use crate::up::say;

/// Blocks of the demo network, of which every kind of row is read.
const DEMO_BLOCKS: u64 = 300;
/// Rows for single reads: many more than are read while an answer is kept.
const FILL: &str = "INSERT INTO withdrawals
    SELECT encode(sha256(n::text::bytea), 'hex'), encode(sha256(('party' || n % 1000)::bytea), 'hex'), n,
        repeat('a5', 32), 'STATUS_FINALIZED', n::text, '0x' || encode(sha256(('foreign' || n)::bytea), 'hex'),
        time, time, '{}', encode(sha256(('tx' || n)::bytea), 'hex'), time
    FROM (
        SELECT n, n * interval '1 second' + timestamptz '2023-01-01 00:00:00+00' AS time
        FROM generate_series(1, 20000) AS n
    ) AS numbers";
/// Replicas of the services that are drilled.
const REPLICAS: [(&str, u32); 2] = [("query", 2), ("node-info", 2)];
/// How long service may take to become normal between two phases.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is normal: no failure in this long, and times below the next figure.
const NORMAL_FOR: Duration = Duration::from_secs(1);
const NORMAL_P99: Duration = Duration::from_millis(250);

/// Everything that a phase needs.
pub(super) struct Stage<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) servers: Servers,
    pub(super) edges: Edges,
    pub(super) load: Load,
    /// What is asked again and again, and kept by the edge.
    pub(super) hot: Vec<Arc<str>>,
    /// Whether it is the short form.
    pub(super) is_short: bool,
    /// Requests a second.
    pub(super) rate: u32,
    /// Times that each bar of time is stretched.
    slack: u32,
}

impl<'a> Stage<'a> {
    /// Starts everything, and the load.
    pub(super) async fn set(mesh: &'a PrivateMesh, args: &ReadsArgs, seed: u64) -> Result<Self, Failure> {
        let (servers, database) = start_filled(mesh).await?;
        let edges =
            mesh.start_services(&servers, &Layout { replicas: &REPLICAS, ..Layout::default() }).await?;
        let mix = mix(&database, &edges).await?;
        let hot = mix.iter().filter(|asked| asked.class == Class::Hot);
        let hot = hot.flat_map(|asked| asked.paths.iter().cloned()).collect();
        let load = Load::start(mix, args.rate, seed)?;
        let (is_short, slack) = (args.play.run.short, args.play.slack);
        Ok(Self { mesh, servers, edges, load, hot, is_short, rate: args.rate, slack })
    }

    /// A bar of time, stretched as asked.
    pub(super) fn bound(&self, time: Duration) -> Duration {
        time * self.slack
    }

    /// Lets a time pass, half of it in the short form.
    pub(super) async fn look_on(&self, time: Duration) {
        sleep(if self.is_short { time / 2 } else { time }).await;
    }

    /// Waits until all is as usual. Says whether it became so.
    pub(super) async fn becomes_normal(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let begun = self.load.now();
        while Instant::now() < deadline {
            sleep(NORMAL_FOR / 4).await;
            let Some(from) = self.load.now().checked_sub(NORMAL_FOR).filter(|from| *from >= begun) else {
                continue;
            };
            let to = self.load.now();
            self.load.settled(to).await;
            let figures = Figures::of(&self.load.samples(from, to), from, to);
            let is_normal = figures.fine == figures.requests && figures.worst_p99 < self.bound(NORMAL_P99);
            if figures.requests > 0 && is_normal {
                return true;
            }
        }
        false
    }

    /// Ends a phase that began at a moment: its samples, and a report of their figures.
    pub(super) async fn report(&self, name: &str, from: Duration) -> (Vec<Sample>, Report) {
        let to = self.load.now();
        self.load.settled(to).await;
        let samples = self.load.samples(from, to);
        let mut report = Report::of(name, Figures::of(&samples, from, to));
        for (text, (first, count)) in self.load.said(from, to) {
            report
                .said
                .push(format!("{count} times, first after {}: {text}", in_ms(first.saturating_sub(from))));
        }
        (samples, report)
    }
}

/// Starts the servers with rows to read, and a block every second.
pub(in crate::rig) async fn start_filled(mesh: &PrivateMesh) -> Result<(Servers, Client), Failure> {
    let servers = mesh.start_servers().await?;
    say("filling in rows");
    let plan = Plan { blocks: DEMO_BLOCKS, ..Plan::default() }.ending_at(std::time::SystemTime::now());
    write_history(&servers.database_url, &plan, |_, _| ()).await.map_err(|error| {
        Failure::failed(format!("the demo network could not be written: {}", with_causes(&error)))
    })?;
    let database = servers.connect("").await?;
    for statement in [FILL, "VACUUM ANALYZE"] {
        database.batch_execute(statement).await.map_err(|error| cannot("fill in rows", &error))?;
    }
    start_devnode(mesh, &servers)?;
    Ok((servers, database))
}

fn start_devnode(mesh: &PrivateMesh, servers: &Servers) -> Result<(), Failure> {
    let group = devnode::group(this_program()?, &mesh.home, &servers.database_url, None, []);
    mesh.add(group, 1)
}

/// What the load asks. Only single rows by random ids and lists of many sizes are not in the edge's memory; what
/// node-info knows is asked of the edge that has none.
pub(in crate::rig) async fn mix(database: &Client, edges: &Edges) -> Result<Vec<Asked>, Failure> {
    let all = async |statement: &str| {
        let rows =
            database.query(statement, &[]).await.map_err(|error| cannot("find rows to read", &error))?;
        Ok::<Vec<String>, Failure>(rows.iter().map(|row| row.get(0)).collect())
    };
    let points: Vec<String> = all("SELECT '/api/v2/withdrawal/' || id FROM withdrawals ORDER BY id").await?;
    let lists = all("SELECT format('/api/v2/candle?candleId=trades_candle_%s_%s&pagination.first=%s', interval, id, n)
        FROM (SELECT DISTINCT market_id AS id FROM trades) AS markets, generate_series(1, 40) AS n,
            unnest(ARRAY['1_minute', '1_hour']) AS interval
        UNION ALL SELECT '/api/v2/rewards/epoch/summaries?pagination.first=' || n FROM generate_series(1, 40) AS n
        UNION ALL SELECT DISTINCT '/accounts?party=' || party_id FROM accounts WHERE party_id ~ '^[0-9a-f]{64}$'")
    .await?;
    // Only the second of these says its height, without which the edge keeps no answer.
    let node = ["/blockchain/height", "/api/v2/network/limits", "/api/v2/upgrade/status"].map(str::to_owned);
    let hot = points.iter().take(10).chain(lists.iter().take(5)).chain(&node[1..2]).cloned().collect();
    let paths = |paths: Vec<String>| paths.into_iter().map(Into::into).collect();
    Ok(vec![
        Asked { class: Class::Point, percent: 60, edge: edges.cached, paths: paths(points) },
        Asked { class: Class::List, percent: 10, edge: edges.cached, paths: paths(lists) },
        Asked { class: Class::Hot, percent: 20, edge: edges.cached, paths: paths(hot) },
        Asked { class: Class::Node, percent: 10, edge: edges.uncached, paths: paths(node.to_vec()) },
    ])
}
