//! The list of all metrics. Services register from it, the table of docs/telemetry.md is generated from it, and
//! tests compare it with the metrics of a running mesh, and with the queries of dashboards and alert rules.
//!
//! Names, units (UCUM) and labels follow the OpenTelemetry semantic conventions where these define one; our own
//! names begin with `mesh.`. Prometheus text uses underscores and appends the unit.

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name by the OpenTelemetry conventions.
    pub name: &'static str,
    /// Unit in UCUM: `s`, `By`, or the counted thing in braces.
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

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only increases.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Counts values by size.
    Histogram,
    /// Constant text in labels.
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
        "Time until the first byte of an HTTP response, by operation (`none` if no route matches), method (`_OTHER` if \
         the operation does not serve it) and status; with 499, time until the client left without one";
    HTTP_SERVER_RESPONSE_BODY_SIZE = "http.server.response.body.size" "By" Histogram HTTP, EDGE,
        "Length of HTTP response bodies, if known at their start";
    HTTP_SERVER_REQUEST_BODY_SIZE = "http.server.request.body.size" "By" Histogram &["operation"], EDGE,
        "Length of request bodies, by operation";
    HTTP_SERVER_ACTIVE_REQUESTS = "http.server.active_requests" "{request}" Gauge &[], EDGE,
        "Requests without a first response byte, excluding fast-path cache hits";
    RPC_SERVER_CALL_DURATION = "rpc.server.call.duration" "s" Histogram CALL, CALLED,
        "Duration of a call, by operation and code: gRPC at the edge, requests on the bus (`mesh`) at the services";
    RPC_SERVER_RESPONSE_SIZE = "rpc.server.response.size" "By" Histogram &["rpc.method"], ANSWERING,
        "Length of replies on the bus, without chunks of downloads";
    RPC_CLIENT_CALL_DURATION = "rpc.client.call.duration" "s" Histogram CALL, EDGE,
        "Duration of a request over the bus including retries, by operation and code";
    EDGE_CONNECTIONS = "mesh.edge.connections" "{connection}" Gauge &[], EDGE,
        "Open client connections";
    EDGE_WATCHES = "mesh.edge.watches" "{watch}" Gauge &[], EDGE,
        "Open watches";
    EDGE_WATCHED_QUESTIONS = "mesh.edge.watches.questions" "{question}" Gauge &[], EDGE,
        "Distinct reads that are watched; each is repeated when a block is stored, at most about once a second";
    EDGE_WATCH_EVENTS = "mesh.edge.watches.events" "{event}" Counter &[], EDGE,
        "Changes and problems sent to watchers, without first answers";
    EDGE_WATCH_EVENTS_SKIPPED = "mesh.edge.watches.events.skipped" "{event}" Counter &[], EDGE,
        "States that were replaced by a newer one before a slow watcher received them";
    EDGE_WATCHES_CUT = "mesh.edge.watches.cut" "{watch}" Counter &[], EDGE,
        "Watches closed because the client read nothing for 120 s";
    EDGE_CERTIFICATE_EXPIRY = "mesh.edge.tls.certificate.expiry" "s" Gauge &[], EDGE,
        "Seconds until the certificate in force expires; only with TLS";
    EDGE_CERTIFICATE_FAULTY = "mesh.edge.tls.certificate.faulty" "" Gauge &[], EDGE,
        "1 while the files of the certificate are faulty, so that an earlier one stays in force; only with TLS";
    EDGE_KEYS = "mesh.edge.keys" "{key}" Gauge &[], EDGE,
        "Keys of clients in force; only with a file of keys";
    EDGE_KEYS_FAULTY = "mesh.edge.keys.faulty" "" Gauge &[], EDGE,
        "1 while the file of keys is faulty, so that earlier keys stay in force; only with a file of keys";
    EDGE_READS = "mesh.edge.reads" "{read}" Counter &["source"], EDGE,
        "Reads by source of the answer: fast path (`kept`), `cache`, an equal read in flight (`shared`), `service`, or \
         the cache while the store is unavailable (`outdated`)";
    EDGE_LIMITED = "mesh.edge.requests.limited" "{request}" Counter &["limit"], EDGE,
        "Requests rejected with 429 because their client exceeds a limit: requests a second (`rate`), downloads \
         (`exports`), or watches (`watches`; also the limit of the edge)";
    EDGE_SHED = "mesh.edge.requests.shed" "{request}" Counter &["reason"], EDGE,
        "Requests rejected with 503: in-flight limit reached (`full`), the share of their `address` or `operation` used up, \
         or no `memory` for a long answer or body";
    EDGE_REFUSED = "mesh.edge.connections.refused" "{connection}" Counter &["reason"], EDGE,
        "Connections rejected with 503, or with TLS closed: limit reached (`full`), share of the `address` used up, more handshakes \
         than requests a second (`rate`), or no file descriptor (`files`)";
    LOG_DROPPED = "mesh.log.lines.dropped" "{line}" Counter &[], EDGE,
        "Log lines dropped because stderr was not drained fast enough; only with the access log on";
    BUS_HEDGES = "mesh.bus.hedges" "{ask}" Counter &[], EDGE,
        "Hedged reads: sent to a second replica because the first one was slow";
    BUS_HEDGES_WON = "mesh.bus.hedges.won" "{ask}" Counter &[], EDGE,
        "Hedged reads that the second replica answered first";
    STREAMS_ACTIVE = "mesh.streams.active" "{stream}" Gauge &[], EDGE,
        "Open downloads";
    STREAMS_ENDED = "mesh.streams.ended" "{stream}" Counter &["outcome"], EDGE,
        "Ended downloads by outcome: complete (`whole`), failed (`broken`), or abandoned by the client (`left`)";
    STREAM_BYTES = "mesh.stream.delivered" "By" Counter &[], EDGE,
        "Bytes of downloads delivered to clients";
    STREAM_PULLS = "mesh.stream.pulls" "{pull}" Counter &[], EDGE,
        "Pulls sent";
    STREAM_PULLS_AGAIN = "mesh.stream.pulls.again" "{pull}" Counter &[], EDGE,
        "Pulls repeated from the last good position; each is a resume";
    REQUESTS_IN_FLIGHT = "mesh.requests.in_flight" "{request}" Gauge &[], ANSWERING,
        "Requests in flight";
    REQUESTS_LOAD = "mesh.requests.load" "{request}" Gauge &[], ANSWERING,
        "Requests in flight, average over the last 15 s: the autoscaling signal";
    REQUESTS_SHED = "mesh.requests.shed" "{request}" Counter &[], ANSWERING,
        "Attempts rejected by a replica because its in-flight limit was reached; the edge tries other replicas, so clients \
         get fewer 503";
    MAILBOX_DEPTH = "mesh.mailbox.depth" "{message}" Gauge &[], ANSWERING,
        "Requests in the actor's mailbox";
    DB_CLIENT_OPERATION_DURATION = "db.client.operation.duration" "s" Histogram
        &["db.system.name", "db.client.connection.pool.name", "error.type"], READING,
        "Duration of a statement including the wait for a connection; `error.type` is empty on success, and `abandoned` if its caller did not wait for the end";
    DB_CLIENT_CONNECTION_WAIT_TIME = "db.client.connection.wait_time" "s" Histogram POOL, READING,
        "Wait of a statement for a connection";
    DB_CLIENT_CONNECTION_TIMEOUTS = "db.client.connection.timeouts" "{timeout}" Counter POOL, READING,
        "Statements that timed out waiting for a connection";
    DB_CLIENT_CONNECTION_PENDING = "db.client.connection.pending_requests" "{request}" Gauge POOL, READING,
        "Statements waiting for a connection";
    DB_CLIENT_CONNECTION_COUNT = "db.client.connection.count" "{connection}" Gauge
        &["db.client.connection.pool.name", "db.client.connection.state"], READING,
        "Open connections to the database by state";
    DB_CLIENT_CONNECTION_MAX = "db.client.connection.max" "{connection}" Gauge POOL, READING,
        "Limit of open connections";
    ROWS_UNREADABLE = "mesh.rows.unreadable" "{value}" Counter &[], READING,
        "Stored values that cannot be encoded in an answer, each counted once per process; the log has table and key";
    STORE_HEIGHT = "mesh.store.height" "{block}" Gauge &[], NODE_INFO,
        "Height of the store's newest block, 0 without one";
    STORE_IS_THERE = "mesh.store.is_there" "{store}" Gauge &[], NODE_INFO,
        "Whether the store responds: 1 or 0";
    NODE_HEIGHT = "mesh.node.height" "{block}" Gauge &[], NODE_INFO,
        "Height of the consensus node's newest block, as last reported";
    NODE_STATE = "mesh.node.state" "{state}" Gauge &[], NODE_INFO,
        "State of the consensus node: 2 reachable, 1 catching up, 0 unreachable";
    CHAIN_LAG = "mesh.chain.lag_blocks" "{block}" Gauge &[], NODE_INFO,
        "Blocks by which the store is behind the node";
    HISTORY_SEGMENTS = "mesh.history.segments" "{segment}" Gauge &[], EXPORT,
        "Segments in the history";
    HISTORY_UNREADABLE = "mesh.history.segments.unreadable" "{segment}" Gauge &[], EXPORT,
        "Segments that cannot be read, and faults of their chain, such as a missing segment";
    HISTORY_HEIGHT = "mesh.history.height" "{block}" Gauge &[], EXPORT,
        "Last height of the newest segment, 0 without one";
    HISTORY_SEAL_DURATION = "mesh.history.seal.duration" "s" Histogram &[], EXPORT,
        "Time to seal a segment";
    HISTORY_SEAL_FAILURES = "mesh.history.seal.failures" "{failure}" Counter &[], EXPORT,
        "Failed attempts to seal a segment";
    SEAL_REFUSED = "mesh.seal.refused" "{span}" Gauge &[], EXPORT,
        "Whether sealing is blocked because the next blocks have a gap or their times do not increase: 1 or 0";
    EXPORT_PULLED = "mesh.export.pulled" "By" Counter &["operation"], EXPORT,
        "Bytes sent in reply to pulls, by operation";
    RELAY_SUBMISSIONS = "mesh.relay.submissions" "{submission}" Counter &["type", "outcome"], RELAY,
        "Submissions by type and outcome";
    RELAY_REMEMBERED = "mesh.relay.remembered" "{transaction}" Gauge &[], RELAY,
        "Transactions whose outcome is in memory";
    RELAY_NODE = "mesh.relay.node" "{state}" Gauge &[], RELAY,
        "State of the consensus node: 2 accepts transactions, 1 catching up, 0 unreachable";
    INGEST_HEIGHT = "mesh.ingest.height" "{block}" Gauge &[], INGEST,
        "Height of the newest stored block, 0 without one";
    INGEST_LAG = "mesh.ingest.lag.blocks" "{block}" Gauge &[], INGEST,
        "Blocks of the consensus node that are not stored yet";
    INGEST_ROWS = "mesh.ingest.rows" "{row}" Counter &["table"], INGEST,
        "Rows stored, by table";
    INGEST_BLOCK_DURATION = "mesh.ingest.block.duration" "s" Histogram &[], INGEST,
        "Time from receiving a block to the commit of its rows";
    INGEST_HALTED = "mesh.ingest.halted" "{halt}" Gauge &["reason"], INGEST,
        "Whether ingest has halted until the reason is corrected, by reason: 1 or 0";
    HTTP_CLIENT_REQUEST_DURATION = "http.client.request.duration" "s" Histogram
        &["http.request.method", "server.address", "server.port", "rpc.method", "error.type"], RELAY,
        "Duration of a call to the consensus node; `error.type` is empty if it was answered";
    PROCESS_CPU_TIME = "process.cpu.time" "s" Counter &[], ALL_WORKLOADS,
        "CPU time used, in user and system mode";
    PROCESS_MEMORY_USAGE = "process.memory.usage" "By" Gauge &[], ALL_WORKLOADS,
        "Resident memory";
    PROCESS_FILES = "process.open_file_descriptor.count" "{file_descriptor}" Gauge &[], ALL_WORKLOADS,
        "Open files and sockets";
    PROCESS_FILES_MAX = "mesh.process.file_descriptor.max" "{file_descriptor}" Gauge &[], ALL_WORKLOADS,
        "Limit of open files and sockets";
    PROCESS_THREADS = "process.thread.count" "{thread}" Gauge &[], ALL_WORKLOADS,
        "Threads";
    PROCESS_TASKS = "mesh.process.tasks" "{task}" Gauge &[], ALL_WORKLOADS,
        "Live asynchronous tasks";
    PROCESS_UPTIME = "process.uptime" "s" Gauge &[], ALL_WORKLOADS,
        "Time since the start";
    TELEMETRY_SPANS = "mesh.telemetry.spans" "{span}" Counter &["outcome"], ALL_WORKLOADS,
        "Recorded spans: `exported`, `failed` at the collector, or `dropped` because it was too slow";
    TARGET = "target" "" Info &["service.name", "service.version"], ALL_WORKLOADS,
        "The service of these metrics";
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
