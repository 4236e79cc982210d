//! `/console/now`: what the console shows of the mesh at this moment: where store and node stand by their news, and who
//! serves by the bus's own counts. Nothing of it tells where anything runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
};
use mesh_bus::{Bus, EndpointStats, ReplicaStats, Survey};
use proto_msgs::Contract;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::{sync::Mutex, time::Instant};
use warp::reply::Response;

use crate::heads::Heads;

/// Where it is.
pub(crate) const PATH: &str = "/console/now";

/// What it is counted as, with the pages of the console.
pub(crate) const NAME: &str = "console";

/// The bus is asked at most once in this time, however many look.
const EVERY: Duration = Duration::from_secs(1);

/// How long the replicas have to answer: on a bus they need milliseconds, and one that is frozen would never.
const WITHIN: Duration = Duration::from_millis(200);

/// Texts of a replica are cut to so many characters.
const TEXT_AT_MOST: usize = 40;

/// Looks at the mesh for everybody who asks.
pub(crate) struct Now {
    bus: Bus,
    heads: Arc<Heads>,
    /// The contract's, in the order of their names: one that nobody serves is told, too.
    workloads: BTreeSet<&'static str>,
    looked: Mutex<Looked>,
}

/// The last look at the replicas.
#[derive(Default)]
struct Looked {
    at: Option<Instant>,
    taken_ns: u128,
    survey: Arc<Survey>,
}

/// The answer. Numbers of 64 bits are texts, as everywhere.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    /// Whether this gateway is on the bus.
    is_bus_there: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<Store>,
    /// Height of the consensus node's newest block.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_height: Option<String>,
    /// When the replicas were asked, nanoseconds since the Unix epoch.
    taken_at: String,
    services: Vec<Service>,
    /// Whether more replicas answered than are told of.
    is_cut: bool,
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
    /// Whether a replica takes requests, by what was heard a moment ago.
    is_taking: bool,
    replicas: Vec<Replica>,
    operations: Vec<Counted>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Replica {
    /// Tells replicas apart; it is not their name on the bus.
    id: String,
    version: String,
    started: String,
    #[serde(flatten)]
    counts: Counts,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    name: String,
    #[serde(flatten)]
    counts: Counts,
}

/// Counts since the replicas began.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Sums {
    requests: u64,
    errors: u64,
    busy_ns: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    requests: String,
    errors: String,
    /// Time spent on all requests, nanoseconds.
    busy_ns: String,
}

impl Sums {
    fn add(&mut self, endpoint: &EndpointStats) {
        self.requests = self.requests.saturating_add(endpoint.num_requests);
        self.errors = self.errors.saturating_add(endpoint.num_errors);
        self.busy_ns = self.busy_ns.saturating_add(endpoint.processing_time);
    }
}

impl From<Sums> for Counts {
    fn from(sums: Sums) -> Self {
        Self {
            requests: sums.requests.to_string(),
            errors: sums.errors.to_string(),
            busy_ns: sums.busy_ns.to_string(),
        }
    }
}

impl Now {
    /// Nothing is asked before somebody looks.
    pub(crate) fn new(bus: Bus, heads: Arc<Heads>) -> Self {
        let operations = Contract::get().operations().iter();
        let workloads = operations.map(|operation| operation.workload.as_str()).collect();
        Self { bus, heads, workloads, looked: Mutex::default() }
    }

    /// The mesh as JSON.
    pub(crate) async fn answer(&self) -> Response {
        let (survey, taken_ns) = self.look().await;
        let store = self.heads.store_news().map(|news| Store {
            is_there: news.is_there,
            height: news.head.map_or(0, |head| head.height).to_string(),
            timestamp: news.head.map_or(0, |head| head.time_ns).to_string(),
        });
        let shown = Shown {
            is_bus_there: self.bus.is_connected(),
            store,
            node_height: self.heads.node().map(|height| height.to_string()),
            taken_at: taken_ns.to_string(),
            services: self.workloads.iter().map(|name| service(name, &survey, &self.bus)).collect(),
            is_cut: survey.is_cut,
        };
        // Texts and numbers can always be written.
        let mut response = Response::new(serde_json::to_vec(&shown).unwrap_or_default().into());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    /// Who serves, and when that was asked. Who comes while the bus is being asked waits for that answer.
    async fn look(&self) -> (Arc<Survey>, u128) {
        let mut looked = self.looked.lock().await;
        if looked.at.is_none_or(|at| at.elapsed() >= EVERY) {
            looked.at = Some(Instant::now());
            let taken_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            let survey = match self.bus.is_connected() {
                true => self.bus.survey(WITHIN).await.unwrap_or_default(),
                // Asked later, when nobody waits for it any more, it would say nothing of this moment.
                false => Survey::default(),
            };
            (looked.survey, looked.taken_ns) = (Arc::new(survey), taken_ns);
        }
        (Arc::clone(&looked.survey), looked.taken_ns)
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
        operations.into_iter().map(|(name, sums)| Counted { name: cut(name), counts: sums.into() }).collect();
    Service { name, is_taking: bus.has_replica(name), replicas, operations }
}

fn replica(stats: &ReplicaStats) -> Replica {
    let mut sums = Sums::default();
    for endpoint in &stats.endpoints {
        sums.add(endpoint);
    }
    let id = Sha256::digest(&stats.id)[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    Replica { id, version: cut(&stats.version), started: cut(&stats.started), counts: sums.into() }
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_AT_MOST).collect()
}
