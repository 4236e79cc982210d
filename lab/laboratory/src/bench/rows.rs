//! Sections "point", "hop" and "hot": single rows through the mesh, and by servers that do less.
//!
//! "point" uses many connections, so that the processors limit the rate; "hop" uses one, so that latency
//! does, and no request shares anything with others. Where the reads of the store are measured, the edge has
//! no cache.
//!
//! Section "store": point reads of the store library in one process, compared with pgbench and the same
//! statement; and PostgreSQL's work for that statement, compared with the plain one.

use std::{cell::OnceCell, net::SocketAddr, sync::Arc, time::SystemTime};

use bytes::Bytes;
use http::uri::PathAndQuery;
use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
};
use mesh_store::Store;
use mesh_testbed::{Collector, Manner, grpc};
use prost::Message as _;
use proto_msgs::v2::GetWithdrawalRequest;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tonic::Request;

use super::{
    Baseline,
    baseline::{self, open_store},
    comparison::{self, REQUESTS, Side},
    load::{Load, Pace, Requests},
    postgres_client::{Bench, PostgresClient},
    section::Figures,
    world::{FIRST_NUMBER, ROWS, STATEMENT, World},
};
use crate::{
    private::{UNCACHED_EDGE, variables},
    watches::Blocks,
};

/// Connections where the processors limit the rate.
const CONNECTIONS: u64 = 32;
/// Rows that are read repeatedly.
const HOT_ROWS: usize = 100;
/// The processes behind an edge without a cache.
const UNCACHED: [&str; 4] = [UNCACHED_EDGE, NATS, "query", POSTGRES];
/// Process names of the services with telemetry.
const TELEMETRY: [&str; 2] = ["edge-telemetry", "query-telemetry"];

/// A side that reads these paths.
fn side<'a>(
    world: &World<'_>,
    (name, pace): (&str, Pace),
    (address, paths): (SocketAddr, &Arc<[String]>),
    processes: &[&str],
) -> Side<'a> {
    let requests = Requests::Paths(Arc::clone(paths));
    Side::load(name, Load::new(address, requests, pace), world.mesh.watch(processes))
}

/// A side that reads withdrawals by gRPC, without a cache.
async fn grpc_side<'a>(world: &World<'_>, pace: Pace, edge: SocketAddr) -> Result<Side<'a>, Failure> {
    let calls: Arc<[Bytes]> = world.withdrawals().await?.iter().map(|path| call_of(path)).collect();
    let watched = world.mesh.watch(&UNCACHED);
    let run = move || {
        pace.run(&watched, async |_| {
            let client = grpc::Client::connect(&format!("http://{edge}")).await;
            let client = client.map_err(|error| format!("cannot connect: {error}"))?;
            let (calls, mut sent) = (Arc::clone(&calls), 0);
            Ok(async move || {
                let call = Request::new(calls[sent % calls.len()].clone());
                sent += 1;
                let path = PathAndQuery::from_static("/api.v2.Query/GetWithdrawal");
                let answer = client.unary(path, call).await;
                answer.map(|_| true).map_err(|status| format!("a call was refused: {status}"))
            })
        })
    };
    Ok(Side::blocking("mesh, gRPC", REQUESTS, run))
}

pub(super) async fn point(world: &World<'_>) -> Result<Figures, Failure> {
    let (edges, paths, direct) = (world.edges().await?, world.withdrawals().await?, direct(world).await?);
    let (telemetry, collector) = start_with_telemetry(world).await?;
    let pace = Pace::closed(CONNECTIONS, world.length());
    let by_grpc = grpc_side(world, pace, edges.uncached).await?;
    let side = |name, address, processes: &[&str]| side(world, (name, pace), (address, &paths), processes);
    let sides = comparison::run_rounds([
        side("mesh, no cache", edges.uncached, &UNCACHED),
        by_grpc,
        side("direct, 1 thread", direct[0], &["direct", POSTGRES]),
        side("direct, 2+1 threads", direct[1], &["direct-threads", POSTGRES]),
        side("mesh, default cache", edges.cached, &["edge", NATS, "query", POSTGRES]),
        side("mesh, telemetry", telemetry, &[TELEMETRY[0], NATS, TELEMETRY[1], POSTGRES]),
    ])
    .await?;
    if collector.taken().requests == 0 {
        return Err(Failure::failed("the collector received nothing"));
    }
    let [mesh, grpc, one, more, cached, telemetry] = &sides;
    let found = vec![
        mesh.rate() / one.rate().max(more.rate()),
        grpc.cost_without(POSTGRES) / mesh.cost_without(POSTGRES),
        cached.cost() / mesh.cost(),
        telemetry.cost() / mesh.cost(),
    ];
    Ok(comparison::figures(&format!("{ROWS} withdrawals by id, {CONNECTIONS} connections"), &sides, found))
}

pub(super) async fn hop(world: &World<'_>) -> Result<Figures, Failure> {
    let (edges, paths, direct) = (world.edges().await?, world.withdrawals().await?, direct(world).await?);
    let pace = Pace::closed(1, world.length());
    let side = |name, address, processes: &[&str]| side(world, (name, pace), (address, &paths), processes);
    let by_grpc = grpc_side(world, pace, edges.uncached).await?;
    let sides = comparison::run_rounds([
        side("mesh, HTTP", edges.uncached, &UNCACHED),
        by_grpc,
        side("direct, 1 thread", direct[0], &["direct", POSTGRES]),
        side("direct, 2+1 threads", direct[1], &["direct-threads", POSTGRES]),
    ])
    .await?;
    let [http, grpc, one, more] = &sides;
    let delay_ms = http.p50_ms() - one.p50_ms().min(more.p50_ms());
    let found = vec![delay_ms, http.cost_without(POSTGRES), grpc.cost_without(POSTGRES)];
    Ok(comparison::figures(&format!("{ROWS} withdrawals by id in sequence"), &sides, found))
}

/// Section "hot". A block a second makes the edge's cache stale.
pub(super) async fn hot(world: &World<'_>) -> Result<Figures, Failure> {
    let (edge, servers) = (world.edges().await?.cached, &world.servers);
    let rows: Arc<[String]> = world.withdrawals().await?[..HOT_ROWS].into();
    let hello = "/hello".to_owned();
    let constant = world.mesh.start_baseline(servers, Baseline::Hello, &hello, edge).await?;
    let repeated = world.mesh.start_baseline(servers, Baseline::Repeated, &rows[0], edge).await?;
    let pace = Pace::closed(CONNECTIONS, world.length());
    let sides = [
        side(world, ("mesh", pace), (edge, &rows), &["edge", NATS, "query", POSTGRES]),
        side(world, ("warp hello", pace), (constant, &Arc::from([hello])), &["hello"]),
        // The cost of the answer's length and headers without any cache.
        side(world, ("warp, the mesh's bytes", pace), (repeated, &rows), &["repeated"]),
    ];
    let blocks = Blocks::write(servers, None);
    let sides = comparison::run_rounds(sides).await?;
    drop(blocks);
    let title = format!("{HOT_ROWS} withdrawals, a block a second, {CONNECTIONS} connections");
    let found = [1, 2].map(|other| sides[0].rate() / sides[other].rate());
    Ok(comparison::figures(&title, &sides, found.into()))
}

/// The handler without the bus. Both baselines give the same answer as the mesh.
async fn direct(world: &World<'_>) -> Result<[SocketAddr; 2], Failure> {
    let start = async || {
        let (servers, path) = (&world.servers, &world.withdrawals().await?[0]);
        let edge = world.edges().await?.uncached;
        let start = async |kind| world.mesh.start_baseline(servers, kind, path, edge).await;
        let (one, more) = (start(Baseline::Direct).await?, start(Baseline::DirectThreads).await?);
        let mut answers = Vec::new();
        for side in [edge, one, more] {
            let url = format!("http://{side}{path}");
            let answered = async { reqwest::get(url).await?.error_for_status()?.text().await };
            answers.push(answered.await.map_err(|error| cannot("read a withdrawal", &error))?);
        }
        match answers.iter().all(|answer| answer == &answers[0]) {
            true => Ok([one, more]),
            false => Err(Failure::failed(format!("the sides answer differently: {}", answers.join(" ")))),
        }
    };
    world.direct.get_or_try_init(start).await.copied()
}

/// Starts services without a cache that send metrics and traces to a collector by default settings. The
/// collector is part of no side.
async fn start_with_telemetry(world: &World<'_>) -> Result<(SocketAddr, Collector), Failure> {
    let collector = Collector::of(Manner::Discards).await;
    let env = [
        ("MESH_BUS_PREFIX", "telemetry".to_owned()),
        ("MESH_EDGE_CACHE_BYTES", "0".to_owned()),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
    ];
    let mut env = variables(&env);
    env.push(baseline::points());
    let services = [("edge", TELEMETRY[0]), ("query", TELEMETRY[1])];
    Ok((world.mesh.start_named(&world.servers, &services, env).await?, collector))
}

/// The encoded request for the row of a path.
fn call_of(path: &str) -> Bytes {
    let id = path.rsplit('/').next().unwrap_or_default().to_owned();
    GetWithdrawalRequest { id, ..GetWithdrawalRequest::default() }.encode_to_vec().into()
}

/// Number of concurrent reads of the store.
const IN_FLIGHT: u64 = 64;
const PGBENCH_CLIENTS: u64 = 16;
/// The setting by which a statement is planned once per connection.
const PLANNED_ONCE: &str = "-c plan_cache_mode=force_generic_plan";
/// The plain statement that gives the same row.
const PLAIN: &str = include_str!("../../sql/plain_withdrawal.sql");

pub(super) async fn store(world: &World<'_>) -> Result<Figures, Failure> {
    let pgbench = PostgresClient::find(&world.servers, "pgbench")?;
    world.withdrawals().await?;
    let (server, length) = (world.mesh.watch(&[POSTGRES]), world.length());
    let by_pgbench = |name: &str, statement: &str| {
        let bench = Bench { clients: PGBENCH_CLIENTS, settings: PLANNED_ONCE, length };
        let last = FIRST_NUMBER + ROWS.cast_signed() - 1;
        let statement = statement.replace("$1", ":n").replace("$2", "NULL");
        pgbench.side(name, &server, bench, &statement, FIRST_NUMBER..=last)
    };
    let (url, watched) = (world.servers.database.url().to_owned(), server.clone());
    let pace = Pace::closed(IN_FLIGHT, length);
    let by_store = move || {
        // All readers of a round share the store.
        let store = OnceCell::new();
        pace.run(&watched, |seed| {
            let store: Result<Store, String> = store.get_or_init(|| open(&url)).clone();
            async move {
                let (store, mut random) = (store?, SmallRng::seed_from_u64(seed));
                store.until_ready().await;
                Ok(async move || {
                    let read = read_any(&store, &mut random).await;
                    read.map(|()| true).map_err(|failure| failure.to_string())
                })
            }
        })
    };
    let sides = comparison::run_rounds([
        Side::blocking("store, 4 connections, 64 at a time", REQUESTS, by_store),
        by_pgbench("pgbench, 16 clients, 2 threads", STATEMENT)?,
        by_pgbench("pgbench, the plain statement", PLAIN)?,
    ])
    .await?;
    let [store, statement, plain] = &sides;
    let found = vec![store.rate() / statement.rate(), statement.cost() / plain.cost()];
    Ok(comparison::figures("the statement of GetWithdrawal, CPU of PostgreSQL", &sides, found))
}

fn open(url: &str) -> Result<Store, String> {
    open_store(url.to_owned()).map_err(|failure| failure.to_string())
}

/// Reads a random row by the store.
async fn read_any(store: &Store, random: &mut SmallRng) -> Result<(), Failure> {
    let number = FIRST_NUMBER + random.random_range(0..ROWS.cast_signed());
    let row = store.point(STATEMENT, &[&number.to_string(), &None::<SystemTime>], None).await;
    let row = row.map_err(|error| cannot("read by the store", &error))?;
    let found: Option<&str> = row.try_get("id").map_err(|error| cannot("read a row", &error))?;
    found.map(drop).ok_or_else(|| Failure::failed(format!("there is no withdrawal {number}")))
}
