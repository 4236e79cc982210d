//! The one list of metrics. Services register from it, the table of docs/telemetry.md is made from it,
//! dashboards and alert rules may query nothing else, and tests compare what a running mesh serves with it,
//! both ways.
//!
//! Names, units (UCUM) and labels follow the OpenTelemetry semantic conventions where these know such a
//! thing; ours begin with `mesh.`. Prometheus text spells them with underscores and with the unit behind.

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name by the OpenTelemetry conventions.
    pub name: &'static str,
    /// Unit in UCUM: `s`, `By`, or a word in braces for what is counted.
    pub unit: &'static str,
    /// Counter, gauge, histogram or info.
    pub kind: Kind,
    /// Labels, as OpenTelemetry spells them.
    pub labels: &'static [&'static str],
    /// The workloads that serve it.
    pub workloads: &'static [&'static str],
    /// Description, for `# HELP`.
    pub help: &'static str,
}

/// How a metric's numbers behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts values by size.
    Histogram,
    /// Text that never changes, in labels.
    Info,
}

/// Every workload.
pub const ALL_WORKLOADS: &[&str] = &["edge", "query", "export", "node-info", "tx-relay", "ingest"];
const EDGE: &[&str] = &["edge"];
const CALLED: &[&str] = &["edge", "query", "export", "node-info", "tx-relay"];
const ANSWERING: &[&str] = &["query", "export", "node-info", "tx-relay"];
const READING: &[&str] = &["query", "export", "node-info"];
const EXPORT: &[&str] = &["export"];
const NODE_INFO: &[&str] = &["node-info"];
const RELAY: &[&str] = &["tx-relay"];
const INGEST: &[&str] = &["ingest"];

/// Labels of one call.
const CALL: &[&str] = &["rpc.system.name", "rpc.method", "rpc.response.status_code"];
const HTTP: &[&str] =
    &["operation", "http.request.method", "http.route", "http.response.status_code", "url.scheme"];
const POOL: &[&str] = &["db.client.connection.pool.name"];

macro_rules! metrics {
    ($($constant:ident = $name:literal $unit:literal $kind:ident $labels:expr, $workloads:expr, $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Metric = Metric {
                name: $name,
                unit: $unit,
                kind: Kind::$kind,
                labels: $labels,
                workloads: $workloads,
                help: $help,
            };
        )*

        /// The whole list.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    HTTP_SERVER_REQUEST_DURATION = "http.server.request.duration" "s" Histogram HTTP, EDGE,
        "Time until an HTTP answer begins, by operation (`none` where no route matches), method and status";
    HTTP_SERVER_RESPONSE_BODY_SIZE = "http.server.response.body.size" "By" Histogram HTTP, EDGE,
        "Length of HTTP answers whose length is known when they begin";
    HTTP_SERVER_REQUEST_BODY_SIZE = "http.server.request.body.size" "By" Histogram &["operation"], EDGE,
        "Length of request bodies that were read for an operation";
    HTTP_SERVER_ACTIVE_REQUESTS = "http.server.active_requests" "{request}" Gauge &[], EDGE,
        "Requests that wait for their answer to begin; answers from memory at the door do not count";
    RPC_SERVER_CALL_DURATION = "rpc.server.call.duration" "s" Histogram CALL, CALLED,
        "Time to answer a call, by operation and code: gRPC at the edge, asks on the bus (`mesh`) at the services";
    RPC_SERVER_RESPONSE_SIZE = "rpc.server.response.size" "By" Histogram &["rpc.method"], ANSWERING,
        "Length of replies on the bus, chunks of downloads not counted";
    RPC_CLIENT_CALL_DURATION = "rpc.client.call.duration" "s" Histogram CALL, EDGE,
        "Time of a round trip over the bus, repetitions included, by operation and code";
    EDGE_CONNECTIONS = "mesh.edge.connections" "{connection}" Gauge &[], EDGE,
        "Open connections of clients";
    EDGE_WATCHES = "mesh.edge.watches" "{watch}" Gauge &[], EDGE,
        "Open watches";
    EDGE_WATCHED_QUESTIONS = "mesh.edge.watches.questions" "{question}" Gauge &[], EDGE,
        "Distinct questions that are watched: each is looked at with a new block, about once a second at most";
    EDGE_WATCH_EVENTS = "mesh.edge.watches.events" "{event}" Counter &[], EDGE,
        "Changes and problems sent to watchers, first answers not counted";
    EDGE_WATCH_EVENTS_SKIPPED = "mesh.edge.watches.events.skipped" "{event}" Counter &[], EDGE,
        "States that slow watchers were not sent because a newer one was there";
    EDGE_WATCHES_CUT = "mesh.edge.watches.cut" "{watch}" Counter &[], EDGE,
        "Watches whose client took no byte for 120 s";
    EDGE_READS = "mesh.edge.reads" "{read}" Counter &["source"], EDGE,
        "Reads by where their answer came from: `kept` at the door or `cache`, `shared` with an equal one under way, \
         `service`, or `outdated` while the store is away";
    EDGE_LIMITED = "mesh.edge.requests.limited" "{request}" Counter &["limit"], EDGE,
        "Requests refused with 429 because of what else comes from their address: too many a second (`rate`), too \
         many downloads (`exports`), or too many watches (`watches`), also of all addresses";
    EDGE_SHED = "mesh.edge.requests.shed" "{request}" Counter &["reason"], EDGE,
        "Requests turned away with 503 because too many are being answered: in all (`full`), or more than their share by \
         their `address` or their `operation`";
    EDGE_REFUSED = "mesh.edge.connections.refused" "{connection}" Counter &["reason"], EDGE,
        "Connections turned away with 503: too many in all (`full`), more than its share by an `address`, or out of `files`";
    LOG_DROPPED = "mesh.log.lines.dropped" "{line}" Counter &[], EDGE,
        "Lines of the log that were dropped because nobody read it fast enough; none unless the access log is on";
    BUS_HEDGES = "mesh.bus.hedges" "{ask}" Counter &[], EDGE,
        "Reads asked again while still unanswered";
    BUS_HEDGES_WON = "mesh.bus.hedges.won" "{ask}" Counter &[], EDGE,
        "Reads answered by asking again";
    STREAMS_ACTIVE = "mesh.streams.active" "{stream}" Gauge &[], EDGE,
        "Downloads being pulled";
    STREAMS_ENDED = "mesh.streams.ended" "{stream}" Counter &["outcome"], EDGE,
        "Downloads by how they ended: `whole`, `broken`, or `left` by their reader";
    STREAM_BYTES = "mesh.stream.delivered" "By" Counter &[], EDGE,
        "Bytes of downloads handed to their readers";
    STREAM_PULLS = "mesh.stream.pulls" "{pull}" Counter &[], EDGE,
        "Pulls sent";
    STREAM_PULLS_AGAIN = "mesh.stream.pulls.again" "{pull}" Counter &[], EDGE,
        "Pulls sent again from the last good position: each is a resume";
    REQUESTS_IN_FLIGHT = "mesh.requests.in_flight" "{request}" Gauge &[], ANSWERING,
        "Requests being worked on";
    REQUESTS_LOAD = "mesh.requests.load" "{request}" Gauge &[], ANSWERING,
        "The same on average over the last 15 s: what an autoscaler goes by";
    REQUESTS_SHED = "mesh.requests.shed" "{request}" Counter &[], ANSWERING,
        "Requests turned away for want of room";
    MAILBOX_DEPTH = "mesh.mailbox.depth" "{message}" Gauge &[], ANSWERING,
        "Requests that wait for the actor to take them";
    DB_CLIENT_OPERATION_DURATION = "db.client.operation.duration" "s" Histogram
        &["db.system.name", "db.client.connection.pool.name", "error.type"], READING,
        "Time of a statement, waiting for a connection included; `error.type` is empty when it succeeded";
    DB_CLIENT_CONNECTION_WAIT_TIME = "db.client.connection.wait_time" "s" Histogram POOL, READING,
        "Time until a connection was there for a statement";
    DB_CLIENT_CONNECTION_TIMEOUTS = "db.client.connection.timeouts" "{timeout}" Counter POOL, READING,
        "Statements that got no connection in time";
    DB_CLIENT_CONNECTION_PENDING = "db.client.connection.pending_requests" "{request}" Gauge POOL, READING,
        "Statements that wait for a connection";
    DB_CLIENT_CONNECTION_COUNT = "db.client.connection.count" "{connection}" Gauge
        &["db.client.connection.pool.name", "db.client.connection.state"], READING,
        "Open connections to the database by state";
    DB_CLIENT_CONNECTION_MAX = "db.client.connection.max" "{connection}" Gauge POOL, READING,
        "Most connections that may be open";
    ROWS_UNREADABLE = "mesh.rows.unreadable" "{value}" Counter &[], READING,
        "Stored values that have no form in an answer, each counted once a process: the log names table and key";
    STORE_HEIGHT = "mesh.store.height" "{block}" Gauge &[], NODE_INFO,
        "Height of the store's newest block, 0 without one";
    STORE_IS_THERE = "mesh.store.is_there" "{store}" Gauge &[], NODE_INFO,
        "Whether the store answers: 1 or 0";
    NODE_HEIGHT = "mesh.node.height" "{block}" Gauge &[], NODE_INFO,
        "Height of the consensus node's newest block, as last heard";
    NODE_STATE = "mesh.node.state" "{state}" Gauge &[], NODE_INFO,
        "How the consensus node is: 2 answers, 1 catches up, 0 is away";
    CHAIN_LAG = "mesh.chain.lag_blocks" "{block}" Gauge &[], NODE_INFO,
        "How many blocks the store is behind the node";
    HISTORY_SEGMENTS = "mesh.history.segments" "{segment}" Gauge &[], EXPORT,
        "Segments held";
    HISTORY_UNREADABLE = "mesh.history.segments.unreadable" "{segment}" Gauge &[], EXPORT,
        "Objects that are named as segments and cannot be read";
    HISTORY_HEIGHT = "mesh.history.height" "{block}" Gauge &[], EXPORT,
        "Last height of the newest segment, 0 without one";
    HISTORY_SEAL_DURATION = "mesh.history.seal.duration" "s" Histogram &[], EXPORT,
        "Time to seal a segment here";
    HISTORY_SEAL_FAILURES = "mesh.history.seal.failures" "{failure}" Counter &[], EXPORT,
        "Times that sealing failed here";
    SEAL_REFUSED = "mesh.seal.refused" "{span}" Gauge &[], EXPORT,
        "Whether the next span is not sealed because its blocks have a gap or their times do not rise: 1 or 0";
    EXPORT_PULLED = "mesh.export.pulled" "By" Counter &["operation"], EXPORT,
        "Bytes given to pulls, by operation";
    RELAY_SUBMISSIONS = "mesh.relay.submissions" "{submission}" Counter &["type", "outcome"], RELAY,
        "Submissions by type and by how they ended";
    RELAY_REMEMBERED = "mesh.relay.remembered" "{transaction}" Gauge &[], RELAY,
        "Transactions whose fate is remembered";
    RELAY_NODE = "mesh.relay.node" "{state}" Gauge &[], RELAY,
        "How the consensus node is: 2 takes transactions, 1 catches up, 0 is away";
    INGEST_HEIGHT = "mesh.ingest.height" "" Gauge &[], INGEST,
        "Height of the newest stored block, 0 without one";
    INGEST_LAG = "mesh.ingest.lag.blocks" "" Gauge &[], INGEST,
        "Blocks of the consensus node that are not stored";
    INGEST_ROWS = "mesh.ingest.rows" "{row}" Counter &["table"], INGEST,
        "Rows stored here, by table";
    INGEST_BLOCK_DURATION = "mesh.ingest.block.duration" "s" Histogram &[], INGEST,
        "Time from a block's arrival to the commit of its rows";
    INGEST_HALTED = "mesh.ingest.halted" "{halt}" Gauge &["reason"], INGEST,
        "Whether nothing is stored until something is corrected, by reason: 1 or 0";
    HTTP_CLIENT_REQUEST_DURATION = "http.client.request.duration" "s" Histogram
        &["http.request.method", "server.address", "server.port", "rpc.method", "error.type"], RELAY,
        "Time of a call to the consensus node; `error.type` is empty when there was an answer";
    PROCESS_CPU_TIME = "process.cpu.time" "s" Counter &[], ALL_WORKLOADS,
        "CPU seconds used, in user and system mode";
    PROCESS_MEMORY_USAGE = "process.memory.usage" "By" Gauge &[], ALL_WORKLOADS,
        "Resident memory";
    PROCESS_FILES = "process.open_file_descriptor.count" "{file_descriptor}" Gauge &[], ALL_WORKLOADS,
        "Open files and sockets";
    PROCESS_FILES_MAX = "mesh.process.file_descriptor.max" "{file_descriptor}" Gauge &[], ALL_WORKLOADS,
        "Most files and sockets that may be open";
    PROCESS_THREADS = "process.thread.count" "{thread}" Gauge &[], ALL_WORKLOADS,
        "Threads";
    PROCESS_TASKS = "mesh.process.tasks" "{task}" Gauge &[], ALL_WORKLOADS,
        "Asynchronous tasks that are alive";
    PROCESS_UPTIME = "process.uptime" "s" Gauge &[], ALL_WORKLOADS,
        "Time since the start";
    TELEMETRY_SPANS = "mesh.telemetry.spans" "{span}" Counter &["outcome"], ALL_WORKLOADS,
        "Recorded spans: `exported`, `failed` at the collector, or `dropped` because it was too slow";
    TARGET = "target" "" Info &["service.name", "service.version"], ALL_WORKLOADS,
        "Who serves these metrics";
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_differ_and_are_spelled_as_the_conventions_want() {
        let mut names = HashSet::new();
        for metric in ALL {
            assert!(names.insert(metric.family()), "{} is there twice", metric.name);
            let is_plain = |text: &str| {
                text.bytes().all(|letter| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_'))
            };
            assert!(is_plain(metric.name) && metric.labels.iter().all(|label| is_plain(label)), "{metric:?}");
            assert!(matches!(metric.unit, "s" | "By" | "") || metric.unit.starts_with('{'), "{metric:?}");
            assert!(!metric.help.ends_with('.') && !metric.workloads.is_empty(), "{metric:?}");
        }
    }
}
