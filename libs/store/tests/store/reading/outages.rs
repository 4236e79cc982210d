//! A frozen server, and a restarted one.

use std::{
    fs,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use mesh_launcher::{
    process::Process,
    servers::{self, Durability, Postgres},
};
use mesh_loader::migrate;
use mesh_store::{ReadError, Store, error::StoreError};
use mesh_testbed::{enterable_folder, retry};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::timeout;

use super::{config, is_away, ready};

/// Deadline for all reads to work again. Two seconds are the goal; an unoptimised build on a busy machine
/// needs more than half a second for the password exchange of each connection.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(4);

/// A server for one test, which freezes and stops it.
struct OwnServer {
    server: Postgres,
    process: Process,
    _folder: TempDir,
}

impl OwnServer {
    async fn start() -> Self {
        let folder = enterable_folder();
        let programs = servers::find_postgres().expect("PostgreSQL is on this machine");
        let (data, log) = (folder.path().join("postgres"), folder.path().join("log"));
        let server = Postgres::prepare(&programs, &data, &log, Durability::Throwaway).await.unwrap();
        let process = Self::run(&server).await;
        migrate::migrate(&server.url()).await.unwrap();
        Self { server, process, _folder: folder }
    }

    async fn run(server: &Postgres) -> Process {
        servers::start(&server.spec(), || server.ready(Duration::from_secs(30))).await.unwrap()
    }

    /// Sends a signal to the server and each of its processes.
    fn signal_all(&self, signal: Signal) {
        // The server first: a stopped one starts no further process.
        let _ = kill_process(Pid::from_raw(self.process.pid().cast_signed()).unwrap(), signal);
        self.signal_sessions(signal);
    }

    /// Sends a signal to each of its processes, but not to the server, which takes new connections.
    fn signal_sessions(&self, signal: Signal) {
        let server = self.process.pid();
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
        for pid in children.split_whitespace() {
            // It may have ended meanwhile.
            let _ = kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), signal);
        }
    }
}

async fn point(store: &Store) -> Result<(), ReadError> {
    store.point("SELECT 1", &[], None).await.map(drop)
}

async fn list(store: &Store) -> Result<(), ReadError> {
    store.list("one", "SELECT 1", &[], None).await.map(drop)
}

/// Waits until both kinds of reads work, over all connections at the same time.
async fn await_reads(store: &Store) {
    retry(RECOVERY_TIMEOUT, async || {
        let (points, lists) =
            tokio::join!(join_all((0..8).map(|_| point(store))), join_all((0..8).map(|_| list(store))));
        let works = points.iter().chain(&lists).all(Result::is_ok);
        if works { Ok(()) } else { Err(format!("reads do not work again: {:?}", store.state())) }
    })
    .await;
}

/// Asserts that every read fails quickly.
async fn assert_fails_at_once(store: &Store) {
    for _ in 0..8 {
        let started = Instant::now();
        assert!(is_away(&point(store).await) && is_away(&list(store).await));
        assert!(started.elapsed() < Duration::from_millis(500), "after {:?}", started.elapsed());
    }
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_ends_an_attempt_to_connect() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url =
        format!("postgres://mesh@{}/mesh?sslmode=disable&connect_timeout=1", server.local_addr().unwrap());
    let connected = timeout(Duration::from_secs(30), mesh_store::connect(&url, "test")).await;
    let error = connected.expect("it waits without an end").unwrap_err();
    assert!(matches!(error, StoreError::Silent { .. }), "{error:?}");
}

#[tokio::test]
async fn a_frozen_server_is_away_after_a_second_and_there_as_soon_as_it_wakes() {
    let server = OwnServer::start().await;
    let store = ready(&config(&server.server.url(), 2)).await;
    await_reads(&store).await;
    for _ in 0..2 {
        server.signal_all(Signal::STOP);
        let frozen = Instant::now();
        let under_way = async {
            tokio::join!(join_all((0..20).map(|_| point(&store))), join_all((0..4).map(|_| list(&store))))
        };
        let (points, lists) = under_way.await;
        let away = frozen.elapsed();
        assert!(points.iter().chain(&lists).all(is_away), "{points:?} {lists:?}");
        assert!((700..3000).contains(&away.as_millis()), "away after {away:?}");
        assert_fails_at_once(&store).await;
        server.signal_all(Signal::CONT);
        await_reads(&store).await;
    }
}

/// As when another server takes the address of one that vanished.
#[tokio::test]
async fn silent_connections_are_replaced_also_where_a_server_takes_new_ones() {
    let server = OwnServer::start().await;
    let store = ready(&config(&server.server.url(), 2)).await;
    await_reads(&store).await;
    server.signal_sessions(Signal::STOP);
    let silent = Instant::now();
    let (points, lists) =
        tokio::join!(join_all((0..2).map(|_| point(&store))), join_all((0..2).map(|_| list(&store))));
    assert!(points.iter().chain(&lists).all(is_away), "{points:?} {lists:?}");
    await_reads(&store).await;
    assert!(silent.elapsed() < Duration::from_secs(6), "{:?}", silent.elapsed());
    server.signal_all(Signal::CONT);
}

#[tokio::test]
async fn a_stopped_server_is_away_at_once_and_there_as_soon_as_it_is_back() {
    let mut server = OwnServer::start().await;
    let store = ready(&config(&server.server.url(), 2)).await;
    await_reads(&store).await;
    let (stopped, ()) = tokio::join!(server.process.stop(), async {
        let mut states = store.watch();
        assert!(timeout(Duration::from_secs(2), states.wait_for(|state| !state.is_there)).await.is_ok());
    });
    assert!(stopped.unwrap().success());
    assert_fails_at_once(&store).await;
    server.process = OwnServer::run(&server.server).await;
    await_reads(&store).await;
}
