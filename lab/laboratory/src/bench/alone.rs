//! Section "alone": single rows in sequence over one connection, by HTTP and by gRPC, through an edge
//! without a cache: what a request costs that shares nothing with others.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::uri::PathAndQuery;
use mesh::{failure::Failure, processes::NATS, terminal::print_line};
use mesh_testbed::grpc::Client;
use prost::Message;
use proto_msgs::v2::GetWithdrawalRequest;
use tokio::runtime;
use tonic::Request;

use super::{
    comparison::{self, REQUESTS, Side},
    cost::{self, MeasuredProcess},
    load::Load,
    meter::{LOAD, Meter, Round},
    reads::Fixture,
    section::Section,
    sections::SectionName,
    withdrawals,
};
use crate::private::UNCACHED_EDGE;

/// How long a client reads before the measurement.
const WARM_UP: Duration = Duration::from_millis(400);

/// Runs both clients in turns.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line("reading single rows in sequence by HTTP and by gRPC");
    let paths = withdrawals::paths(&fixture.servers, withdrawals::ROWS).await?;
    let calls: Arc<[Bytes]> = paths.iter().map(|path| call_of(path)).collect();
    let (edge, length) = (fixture.edges.uncached, fixture.length);
    let processes = fixture.mesh.watch(&[UNCACHED_EDGE, NATS, "query"]);
    let watched = processes.clone();
    let sides = comparison::run_rounds([
        Side::load("HTTP", Load::paths(edge, paths, 1, length), processes),
        Side::blocking("gRPC", REQUESTS, move || call_for(edge, &calls, length, &watched)),
    ])
    .await?;
    let found = sides.each_ref().map(|side| {
        (format!("{}, CPU us of edge, bus and service", side.name()), side.cost().unwrap_or(f64::NAN))
    });
    let title = format!("{} withdrawals by id, in sequence", withdrawals::ROWS);
    Ok(comparison::section(SectionName::Alone, &title, &sides, &found))
}

/// The encoded request for the row of a path.
fn call_of(path: &str) -> Bytes {
    let id = path.rsplit('/').next().unwrap_or_default().to_owned();
    GetWithdrawalRequest { id }.encode_to_vec().into()
}

/// Calls for a while, each call after the answer to the one before.
fn call_for(
    edge: SocketAddr,
    calls: &[Bytes],
    length: Duration,
    watched: &[MeasuredProcess],
) -> Result<Round, String> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start the load: {error}"))?.block_on(async {
        let client = Client::connect(&format!("http://{edge}")).await;
        let client = client.map_err(|error| format!("cannot connect: {error}"))?;
        let path = PathAndQuery::from_static("/api.v2.Query/GetWithdrawal");
        let call = async |call: &Bytes| {
            let answer = client.unary(path.clone(), Request::new(call.clone())).await;
            answer.map(drop).map_err(|status| format!("a call was refused: {status}"))
        };
        let mut calls = calls.iter().cycle();
        let warm = Instant::now() + WARM_UP;
        while Instant::now() < warm {
            call(calls.next().ok_or("there are no calls")?).await?;
        }
        let (meter, own_us, mut took_ms) = (Meter::start(watched), cost::thread_cpu_us(), Vec::new());
        let end = Instant::now() + length;
        while Instant::now() < end {
            let begun = Instant::now();
            call(calls.next().ok_or("there are no calls")?).await?;
            took_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        let own_us = cost::thread_cpu_us() - own_us;
        let spent = meter.stop(own_us);
        Ok(Round { amount: took_ms.len() as u64, took_ms, spent, own_us: vec![(LOAD, own_us)] })
    })
}
