//! `/console/now`: the status of the mesh for the console. The heights of store and node come from their
//! announcements, the replicas from the bus' statistics. A service that is slow to reply is shown with its last
//! reply, not as missing. Hosts and addresses are not shown.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
};
use mesh_bus::{Bus, BusError, EndpointStats, HaltReason, ReplicaStats, Survey, Surveyor};
use proto_msgs::Contract;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use tokio::{
    sync::{Mutex, OnceCell},
    time::Instant,
};
use warp::reply::Response;

use crate::ask::heads::ChainHeads;

/// The path.
pub(crate) const PATH: &str = "/console/now";

/// The name in metrics and logs, shared with the pages of the console.
pub(crate) const NAME: &str = "console";

/// Least time between two surveys of the bus.
const SURVEY_INTERVAL: Duration = Duration::from_secs(1);

/// Longest wait for the answers of replicas, which take milliseconds; a frozen one never answers. One that
/// answers later is shown by its last answer, and the late one counts for the next survey.
const SURVEY_TIMEOUT: Duration = Duration::from_millis(500);

/// Longest text of a replica that is shown, characters.
const MAX_TEXT: usize = 40;

/// The status of the mesh, surveyed on request.
pub(crate) struct MeshStatus {
    bus: Bus,
    heads: Arc<ChainHeads>,
    /// The contract's workloads by name; one without a replica is shown, too.
    workloads: BTreeSet<&'static str>,
    /// Made at the first request.
    surveyor: OnceCell<Surveyor>,
    last: Mutex<LastSurvey>,
}

/// The last survey of the replicas.
#[derive(Default)]
struct LastSurvey {
    at: Option<Instant>,
    taken_ns: u128,
    survey: Arc<Survey>,
}

/// The answer. 64-bit numbers are strings.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusReply {
    /// Whether this gateway is on the bus.
    is_bus_there: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<Store>,
    /// Height of the consensus node's newest block.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_height: Option<String>,
    /// The block that cannot be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    halt: Option<Halt>,
    /// When the replicas were surveyed, nanoseconds since the Unix epoch.
    taken_at: String,
    services: Vec<Service>,
    /// Whether more replicas answered than are shown.
    is_cut: bool,
}

#[derive(Debug, Serialize)]
struct Halt {
    height: String,
    reason: HaltReason,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Store {
    /// Whether it answers.
    is_there: bool,
    height: String,
    /// Of its newest block, nanoseconds since the Unix epoch.
    timestamp: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Service {
    name: &'static str,
    /// Whether a replica takes requests, by its last heartbeat.
    is_taking: bool,
    replicas: Vec<Replica>,
    operations: Vec<Counted>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Replica {
    /// A digest of the replica's id on the bus.
    id: String,
    version: String,
    started: String,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    name: String,
    #[serde(flatten)]
    sums: Sums,
}

/// Sums since the replicas started.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sums {
    #[serde(serialize_with = "as_text")]
    requests: u64,
    #[serde(serialize_with = "as_text")]
    errors: u64,
    /// Time spent on all requests, nanoseconds.
    #[serde(serialize_with = "as_text")]
    busy_ns: u64,
}

fn as_text<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

impl Sums {
    fn add(&mut self, endpoint: &EndpointStats) {
        self.requests = self.requests.saturating_add(endpoint.num_requests);
        self.errors = self.errors.saturating_add(endpoint.num_errors);
        self.busy_ns = self.busy_ns.saturating_add(endpoint.processing_time);
    }
}

impl MeshStatus {
    /// The status of the mesh on this bus.
    pub(crate) fn new(bus: Bus, heads: Arc<ChainHeads>) -> Self {
        let operations = Contract::get().operations().iter();
        let workloads = operations.map(|operation| operation.workload.as_str()).collect();
        Self { bus, heads, workloads, surveyor: OnceCell::new(), last: Mutex::default() }
    }

    /// The mesh as JSON.
    pub(crate) async fn answer(&self) -> Response {
        let (survey, taken_ns) = self.survey().await;
        let store = self.heads.store_news().map(|news| Store {
            is_there: news.is_there,
            height: news.head.map_or(0, |head| head.height).to_string(),
            timestamp: news.head.map_or(0, |head| head.time_ns).to_string(),
        });
        let reply = StatusReply {
            is_bus_there: self.bus.is_connected(),
            store,
            node_height: self.heads.node().map(|height| height.to_string()),
            halt: self.heads.halt().map(|halt| Halt { height: halt.height.to_string(), reason: halt.reason }),
            taken_at: taken_ns.to_string(),
            services: self.workloads.iter().map(|name| service(name, &survey, &self.bus)).collect(),
            is_cut: survey.is_cut,
        };
        // Serializing text and numbers to memory cannot fail.
        let mut response = Response::new(serde_json::to_vec(&reply).unwrap_or_default().into());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    /// The replicas, and when they were surveyed. Requests during a survey wait for its result.
    async fn survey(&self) -> (Arc<Survey>, u128) {
        let mut last = self.last.lock().await;
        if last.at.is_none_or(|at| at.elapsed() >= SURVEY_INTERVAL) {
            last.at = Some(Instant::now());
            let taken_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            let survey = match self.bus.is_connected() {
                true => self.take_survey().await.unwrap_or_default(),
                // A survey after the bus is back would not show this moment.
                false => Survey::default(),
            };
            (last.survey, last.taken_ns) = (Arc::new(survey), taken_ns);
        }
        (Arc::clone(&last.survey), last.taken_ns)
    }

    async fn take_survey(&self) -> Result<Survey, BusError> {
        let surveyor = self.surveyor.get_or_try_init(|| Surveyor::start(self.bus.clone())).await?;
        surveyor.survey(SURVEY_TIMEOUT).await
    }
}

fn service(name: &'static str, survey: &Survey, bus: &Bus) -> Service {
    let replicas = survey.replicas.iter().filter(|replica| replica.name == name);
    let mut operations = BTreeMap::<&str, Sums>::new();
    for endpoint in replicas.clone().flat_map(|replica| &replica.endpoints) {
        operations.entry(&endpoint.name).or_default().add(endpoint);
    }
    let mut replicas: Vec<Replica> = replicas.map(replica).collect();
    replicas.sort_by(|one, other| (&one.started, &one.id).cmp(&(&other.started, &other.id)));
    let operations =
        operations.into_iter().map(|(name, sums)| Counted { name: truncate(name), sums }).collect();
    Service { name, is_taking: bus.has_replica(name), replicas, operations }
}

fn replica(stats: &ReplicaStats) -> Replica {
    let mut sums = Sums::default();
    for endpoint in &stats.endpoints {
        sums.add(endpoint);
    }
    let id = Sha256::digest(&stats.id)[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    Replica { id, version: truncate(&stats.version), started: truncate(&stats.started), sums }
}

fn truncate(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}
