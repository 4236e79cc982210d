//! Where a drill is played: a private mesh with two replicas of what is drilled, rows to read, a block every second,
//! and the load that never stops.

use std::sync::Arc;
use std::time::Duration;

use mesh_demo::{Plan, write_history};
use mesh_launcher::control::{Answer, Request};
use mesh_launcher::services::SERVICES;
use rand::Rng as _;
use rand::rngs::SmallRng;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Client;

use super::load::{Asked, Class, Load};
use super::report::{Report, in_ms};
use super::samples::{Figures, Sample};
use crate::cli::RigArgs;
use crate::devnode;
use crate::failure::{Failure, with_causes};
use crate::private::{Edges, Layout, PrivateMesh, Servers, cannot, this_program};
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
/// How long something may take that a process does as soon as it runs.
const SOON: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(5);

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
    /// Times that each bar of time is stretched.
    slack: u32,
}

impl<'a> Stage<'a> {
    /// Starts everything, and the load.
    pub(super) async fn set(mesh: &'a PrivateMesh, args: &RigArgs, seed: u64) -> Result<Self, Failure> {
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
        let edges = mesh.start_services(&servers, &Layout { replicas: &REPLICAS, env: Vec::new() }).await?;
        let mix = mix(&database, &edges).await?;
        let hot = mix.iter().filter(|asked| asked.class == Class::Hot);
        let hot = hot.flat_map(|asked| asked.paths.iter().cloned()).collect();
        let load = Load::start(mix, args.rate, seed)?;
        Ok(Self { mesh, servers, edges, load, hot, is_short: args.short, slack: args.slack })
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

    /// Gives an order as the command line does.
    pub(super) async fn order(&self, request: Request) -> Result<(), Failure> {
        match self.mesh.supervisor.answer(request).await {
            Answer::Refused { reason } => Err(Failure::failed(reason)),
            Answer::Done { .. } | Answer::Rows { .. } | Answer::Environment { .. } => Ok(()),
        }
    }

    /// The processes of a name, by replica.
    pub(super) fn pids(&self, name: &str) -> Vec<u32> {
        let rows = self.mesh.supervisor.rows();
        rows.iter().filter(|row| row.service == name).map(|row| row.pid).collect()
    }

    /// The processes of all services.
    pub(super) fn service_pids(&self) -> Vec<u32> {
        SERVICES.iter().flat_map(|service| self.pids(service.name)).collect()
    }

    /// One replica of a service, by chance.
    pub(super) fn one_of(&self, name: &str, random: &mut SmallRng) -> Result<u32, Failure> {
        let pids = self.pids(name);
        let nobody = || Failure::failed(format!("no {name} runs"));
        if pids.is_empty() { Err(nobody()) } else { Ok(pids[random.random_range(0..pids.len())]) }
    }

    /// Waits until a name has as many processes as before and this one is not among them.
    pub(super) async fn replaced(&self, name: &str, pid: u32, count: usize) -> Result<(), Failure> {
        let waited = timeout(SOON, async {
            while self.pids(name).contains(&pid) || self.pids(name).len() < count {
                sleep(LOOK).await;
            }
        });
        waited.await.map_err(|_| Failure::failed(format!("{name} was not started again")))
    }

    /// Waits until the database takes connections.
    pub(super) async fn database_is_back(&self) -> Result<(), Failure> {
        let waited = timeout(SOON, async {
            while self.answering_database().await.is_none() {
                sleep(LOOK).await;
            }
        });
        waited.await.map_err(|_| Failure::failed("the database did not come back"))
    }

    async fn answering_database(&self) -> Option<Client> {
        let client = self.servers.connect("").await.ok()?;
        client.simple_query("SELECT 1").await.ok()?;
        Some(client)
    }

    /// Waits until the bus takes connections.
    pub(super) async fn bus_is_back(&self) -> Result<(), Failure> {
        let address = self.servers.bus.url.trim_start_matches("nats://");
        let waited = timeout(SOON, async {
            while tokio::net::TcpStream::connect(address).await.is_err() {
                sleep(LOOK).await;
            }
        });
        waited.await.map_err(|_| Failure::failed("the bus did not come back"))
    }
}

/// Sends a signal to a process of the mesh.
pub(super) fn send(pid: u32, signal: Signal) -> Result<(), Failure> {
    let pid = Pid::from_raw(pid.cast_signed()).ok_or_else(|| Failure::failed("there is no such process"))?;
    kill_process(pid, signal).map_err(|error| cannot("send a signal", &error))
}

fn start_devnode(mesh: &PrivateMesh, servers: &Servers) -> Result<(), Failure> {
    let group = devnode::group(this_program()?, &mesh.home, &servers.database_url, []);
    mesh.add(group, 1)
}

/// What the load asks. Only single rows by random ids and lists of many sizes are not in the edge's memory; what
/// node-info knows is asked of the edge that has none.
async fn mix(database: &Client, edges: &Edges) -> Result<Vec<Asked>, Failure> {
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
