//! The sections: what each measures, and its bars.

use futures_util::future::LocalBoxFuture;
use mesh::failure::Failure;

use super::{
    exports, ingest, lists, relay, rest, rows,
    section::{Bar, Figures, at_least, at_most},
    secured, watching,
    world::World,
};

/// A family of sections, with a private mesh of its own.
pub(super) struct Suite {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// In the order in which they are measured.
    pub(super) sections: &'static [Row],
}

/// A section.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) measure: Measure,
    pub(super) bars: &'static [Bar],
}

type Measure = for<'a> fn(&'a World<'a>) -> LocalBoxFuture<'a, Result<Figures, Failure>>;

/// The name of all suites together.
pub(super) const ALL: &str = "all";

pub(super) const SUITES: &[Suite] = &[
    Suite {
        name: "reads",
        about: "Reads of the store: single rows, hot rows, pages",
        sections: &[
            Row {
                name: "point",
                about: "Single rows under load: with the bus and without, with cache and without, with telemetry",
                measure: |world| Box::pin(rows::point(world)),
                bars: &[
                    at_least("mesh / the better baseline, requests a second", 0.5, 0.65),
                    at_most("gRPC / HTTP, CPU time of a request", 1.5, 1.2),
                    at_most("default cache / no cache, CPU time of a request", 1.1, 1.0),
                    at_most("telemetry / none, CPU time of a request", 1.05, 1.02),
                ],
            },
            Row {
                name: "hop",
                about: "Single rows over one connection: latency that the bus adds, and cost by HTTP and gRPC",
                measure: |world| Box::pin(rows::hop(world)),
                bars: &[
                    at_most("mesh - the better baseline, ms of the median request", 0.3, 0.15),
                    at_most("HTTP, CPU us of edge, bus and service", 300.0, 250.0),
                    at_most("gRPC, CPU us of edge, bus and service", 400.0, 300.0),
                ],
            },
            Row {
                name: "hot",
                about: "The same few rows repeatedly, against constant answers of warp",
                measure: |world| Box::pin(rows::hot(world)),
                bars: &[
                    at_least("mesh / warp hello, requests a second", 0.75, 0.9),
                    at_least("mesh / warp with the mesh's bytes, requests a second", 0.9, 1.0),
                ],
            },
            Row {
                name: "secured",
                about: "Reads from the cache with a key and over TLS, against reads without",
                measure: |world| Box::pin(secured::measure(world)),
                bars: &[
                    at_most("a limit of a key - of the address, CPU us of a request", 2.0, 1.0),
                    at_most("TLS / plain, CPU time of a request", 1.5, 1.2),
                    at_most("TLS - plain, CPU us of a connection", 1000.0, 500.0),
                ],
            },
            Row {
                name: "store",
                about: "Single rows by the store library and its statement, against pgbench and the plain statement",
                measure: |world| Box::pin(rows::store(world)),
                bars: &[
                    at_least("store / pgbench, reads a second", 1.0, 1.6),
                    at_most("statement / plain statement, CPU time of PostgreSQL", 1.6, 1.25),
                ],
            },
            Row {
                name: "lists",
                about: "PostgreSQL's work for a page of each list, against the plain statement",
                measure: |world| Box::pin(lists::lists(world)),
                bars: &[at_most(
                    "statement / plain statement, CPU time of PostgreSQL, the worst list",
                    1.25,
                    1.1,
                )],
            },
            Row {
                name: "as-of",
                about: "PostgreSQL's work for a page as of a block, against the newest page",
                measure: |world| Box::pin(lists::as_of(world)),
                bars: &[at_most("as of a block / newest, CPU time of PostgreSQL, the worst page", 2.0, 1.5)],
            },
        ],
    },
    Suite {
        name: "exports",
        about: "Downloads and their sources: stored history, sealing, the ledger",
        sections: &[
            Row {
                name: "splice",
                about: "A stored export, against the bus alone and against deflating it again",
                measure: |world| Box::pin(exports::splice(world)),
                bars: &[
                    at_least("export of large segments / raw NATS, bytes a second", 0.5, 0.8),
                    at_least("CSV of the export / one-stream deflate, bytes a second", 5.0, 10.0),
                    at_most("edge or worker, MiB above its memory before", 64.0, 32.0),
                ],
            },
            Row {
                name: "first-byte",
                about: "The time to the first byte of an export of a thousand segments",
                measure: |world| Box::pin(exports::first_byte(world)),
                bars: &[at_most("export that was requested before, ms to the first byte", 5.0, 1.0)],
            },
            Row {
                name: "sealing",
                about: "Sealing a segment, against psql and gzip",
                measure: |world| Box::pin(exports::sealing(world)),
                bars: &[at_least("sealing / psql COPY and gzip, rows a second", 0.8, 1.5)],
            },
            Row {
                name: "ledger",
                about: "Ledgers of several shapes as CSV, against psql",
                measure: |world| Box::pin(exports::ledger::measure(world)),
                bars: &[
                    at_least("slowest ledger / psql COPY, bytes a second", 0.8, 1.0),
                    at_most("dearest ledger, CPU s/GB above psql COPY", 2.0, 0.0),
                ],
            },
            Row {
                name: "scaled",
                about: "Downloads and single rows while workers are added and removed",
                measure: |world| Box::pin(exports::scaled::measure(world)),
                bars: &[
                    at_least("full speed, 4 workers / 1 worker, bytes a second", 0.9, 1.0),
                    at_most("p99 of reads beside 4 workers / beside 1", 1.25, 1.0),
                ],
            },
        ],
    },
    Suite {
        name: "relay",
        about: "Transactions from a client to the consensus node",
        sections: &[Row {
            name: "submit",
            about: "Submissions under load and over one connection, against the node's own RPC",
            measure: |world| Box::pin(relay::measure(world)),
            bars: &[
                at_least("mesh / node's RPC, submissions a second", 0.5, 0.8),
                at_most("mesh - node's RPC, ms of the median submission over one connection", 0.5, 0.3),
            ],
        }],
    },
    Suite {
        name: "watch",
        about: "Watches, against polling",
        sections: &[
            Row {
                name: "watchers",
                about: "Ten thousand watchers at a block a second, against polling, and over WebSockets",
                measure: |world| Box::pin(watching::all_change(world)),
                bars: &[
                    at_most("from COMMIT to a watcher, p99 ms", 250.0, 100.0),
                    at_most("changes that a watcher missed", 0.0, 0.0),
                    at_most("edge, CPU ms a second", 500.0, 300.0),
                    at_most("edge, KiB a watcher", 16.0, 12.0),
                    at_most("CPU of the mesh, watching / polling", 1.0, 0.25),
                    at_most("p99 ms, WebSockets / event streams", 1.2, 1.0),
                    at_most("KiB a watcher, WebSockets / event streams", 1.2, 1.0),
                    at_most("changes that a watcher over a WebSocket missed", 0.0, 0.0),
                ],
            },
            Row {
                name: "watch-quiet",
                about: "The same where a block changes few of the answers",
                measure: |world| Box::pin(watching::few_change(world)),
                bars: &[
                    at_most("changes that a watcher missed", 0.0, 0.0),
                    at_most("CPU of the mesh, watching / polling", 0.25, 0.2),
                ],
            },
            Row {
                name: "watch-fan-out",
                about: "A hundred thousand watchers of five edges where a block changes few of the answers",
                measure: |world| Box::pin(watching::fan_out(world)),
                bars: &[
                    at_most("changes that a watcher missed", 0.0, 0.0),
                    at_most("edges, KiB a watcher", 16.0, 12.0),
                ],
            },
            Row {
                name: "watch-beside",
                about: "Single rows with ten thousand watchers",
                measure: |world| Box::pin(watching::beside(world)),
                bars: &[at_most("p99 beside watchers / alone", 1.25, 1.1)],
            },
        ],
    },
    Suite {
        name: "ingest",
        about: "A chain's blocks from the node into the store",
        sections: &[
            Row {
                name: "catch-up",
                about: "Rows a second while catching up with a chain, against psql's COPY of the same rows",
                measure: |world| Box::pin(ingest::catch_up(world)),
                bars: &[
                    at_least("100 rows a block: ingest / COPY, rows a second", 0.5, 0.7),
                    at_least("500 rows a block: ingest / COPY, rows a second", 0.5, 0.7),
                ],
            },
            Row {
                name: "front",
                about: "The time from a block at the node until a read at an edge shows it",
                measure: |world| Box::pin(ingest::front(world)),
                bars: &[
                    at_most("from the node's RPC to a read at an edge, p99 ms", 100.0, 50.0),
                    at_most("from the node's RPC to a read at an edge, median ms", 50.0, 25.0),
                ],
            },
        ],
    },
    Suite {
        name: "rest",
        about: "An idle mesh",
        sections: &[
            Row {
                name: "idle",
                about: "Processor time and memory of an idle mesh",
                measure: |world| Box::pin(rest::idle(world)),
                bars: &[
                    at_most("all services and the bus, CPU ms a second", 7.0, 3.0),
                    at_most("all services and the bus, resident MiB", 80.0, 75.0),
                ],
            },
            Row {
                name: "following",
                about: "Processor time and memory of ingest while blocks without rows come",
                measure: |world| Box::pin(rest::following(world)),
                bars: &[
                    at_most("ingest at a block a second, CPU ms a second", 1.0, 0.5),
                    at_most("ingest, resident MiB", 12.0, 10.0),
                ],
            },
        ],
    },
];

/// The sections to be measured, by suite: those that were named, or all of the suite. A section's name in place
/// of a suite is that section.
///
/// # Errors
/// When a named section belongs to another suite.
pub(super) fn chosen(suite: &str, named: &[String]) -> Result<Vec<Vec<&'static Row>>, Failure> {
    let of_suite = SUITES.iter().map(|found| {
        let is_whole = [ALL, found.name].contains(&suite);
        found.sections.iter().filter(|row| is_whole || row.name == suite).collect::<Vec<_>>()
    });
    let mut chosen: Vec<Vec<&Row>> = of_suite.collect();
    let names: Vec<&str> = chosen.iter().flatten().map(|row| row.name).collect();
    if let Some(other) = named.iter().find(|name| !names.contains(&name.as_str())) {
        let names = names.join(", ");
        return Err(Failure::usage(format!("{other} is of another suite; this one has {names}")));
    }
    let is_named = |row: &&Row| named.is_empty() || named.iter().any(|name| row.name == name);
    chosen.iter_mut().for_each(|rows| rows.retain(is_named));
    Ok(chosen.into_iter().filter(|rows| !rows.is_empty()).collect())
}
