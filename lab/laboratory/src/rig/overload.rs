//! `mesh rig overload`: more clients that read large lists than one replica of `query` can serve at the same time.
//!
//! Each client sends its next request after the answer. None is refused, all wait about equally long, and reads of
//! single rows beside them stay fast.

use std::time::Duration;

use mesh::{failure::Failure, processes::NATS};
use mesh_launcher::services::SERVICES;
use tokio::{task::JoinSet, time::Instant};

use super::{
    args::{POLITE_RATE, SLACK},
    clients::{
        connection::Connection,
        load::{Load, RequestClass},
        memory::{ProcessMemory, while_watched},
        samples::{latency, quantile},
    },
    engine::{Drill, Play, Playing, phase},
    flood::attackers::connect_as,
    report::{Report, in_ms},
    world::{Setup, World},
};

/// Trades for the pages.
const FILL: [&str; 2] =
    [include_str!("../../sql/fill_list.sql"), "SELECT pg_temp.fill('trades', '{synthetic_time}')"];
/// The length of a page, and a number that selects all trades, follow: no two requests are the same.
const PATH: &str = "/api/v2/trades?pagination.first=";
/// Rows of a page; fewer in the short form, which runs debug builds, so that turns come in time on a slow machine, too.
const ROWS: [u64; 2] = [1000, 100];
/// How long the clients send requests.
const LENGTH: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(3)];
/// Greatest p99 of single rows beside the lists. In the short form, whose debug builds have no speed to hold, it is
/// a share of the mean of the lists: single rows do not wait for their turn behind them.
const POINT_P99: Duration = Duration::from_millis(20);
const POINT_SHARE_SHORT: f64 = 0.5;
/// Greatest p99 of the lists, as a multiple of the mean that follows from the number of clients and the rate.
const TIMES: f64 = 3.0;
/// Greatest memory of all services and the bus together, MiB.
const MEMORY_MIB: u64 = 400;

pub(super) const DRILL: Drill = Drill {
    name: "overload",
    about: "Reads large lists with more clients than can be served at the same time; none may be refused",
    options: &[SLACK, POLITE_RATE],
    play: Play::Phases(Playing {
        world: |_| Setup { fill: &FILL, has_rows: true, ..Setup::default() },
        setup: |world| format!("{} single rows a second beside lists", world.options.number("rate")),
        becomes_normal: |_| Box::pin(std::future::ready(true)),
        timeout: Duration::from_secs(120),
        phases: &[
            phase("64", "64 clients", |world, _| Box::pin(overload(world, 64))),
            phase("256", "256 clients", |world, _| Box::pin(overload(world, 256))),
            phase("1024", "1,024 clients", |world, _| Box::pin(overload(world, 1024))),
        ],
    }),
};

async fn overload(world: &World<'_>, clients: usize) -> Result<Report, Failure> {
    let (edge, length) = (world.edges.cached, world.play.either(LENGTH));
    let rows = world.play.either(ROWS);
    let class = RequestClass { percent: 100, edge, requests: world.read_requests.points() };
    let load = Load::start(vec![class], world.options.number("rate"), world.seed)?;
    let (begun, mut reading) = (Instant::now(), JoinSet::new());
    for number in 0..clients {
        reading.spawn(async move {
            let stream = connect_as(number, edge, false).await.ok()?;
            let (mut connection, mut took) = (Connection::over(stream), Vec::new());
            for request in (number..).step_by(clients).take_while(|_| begun.elapsed() < length) {
                let asked = Instant::now();
                let answer = connection
                    .get(&format!("{PATH}{rows}&dateRange.startTimestamp={request}"))
                    .await
                    .ok()?
                    .raw;
                took.push((answer.status, asked.elapsed()));
            }
            Some(took)
        });
    }
    let names: Vec<&str> = SERVICES.iter().map(|service| service.name).chain([NATS]).collect();
    let mut memory = ProcessMemory::of_all(world.mesh, &names);
    let ended = while_watched(&mut memory, reading.join_all()).await;
    let seconds = begun.elapsed().as_secs_f64();
    let (samples, figures, mut report) = load.report(&format!("beside {clients}"), Duration::ZERO).await;
    let lost = ended.iter().filter(|client| client.is_none()).count();
    let answers: Vec<(u16, Duration)> = ended.into_iter().flatten().flatten().collect();
    let mean = Duration::from_secs_f64(seconds * clients as f64 / answers.len().max(1) as f64);
    let p99 = quantile(answers.iter().map(|(_, took)| *took).collect(), 0.99);
    let most_mib = memory.iter().map(|process| process.at_most).sum::<u64>() >> 10;
    figures.none_fails(&mut report);
    let failed = answers.iter().filter(|(status, _)| *status != 200).count() + lost;
    report.bar(format!("lists without answer: {failed} of {}, at most 0", answers.len()), failed == 0);
    report.bar_at_most(&format!("p99 of the lists, {} on average", in_ms(mean)), p99, mean.mul_f64(TIMES));
    let single = latency(&samples, 0.99);
    let bound = world.play.either([world.play.bound(POINT_P99), mean.mul_f64(POINT_SHARE_SHORT)]);
    report.bar_at_most("p99 of single rows", single, bound);
    report.bar(format!("memory: {most_mib} MiB, at most {MEMORY_MIB}"), most_mib <= MEMORY_MIB);
    report.notes.push(format!("{:.0} lists a second", answers.len() as f64 / seconds));
    Ok(report)
}
