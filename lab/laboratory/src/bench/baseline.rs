//! `mesh baseline`: processes that the product is compared with, each measured like a service.
//!
//! [`PrivateMesh::start_baseline`] starts them. Each serves plain `warp` on an inherited socket until it is
//! killed.

use std::{
    net::{SocketAddr, TcpListener},
    sync::mpsc,
    thread,
    time::Duration,
};

use actix::{Actor as _, Addr, System};
use clap::ValueEnum as _;
use listenfd::ListenFd;
use mesh::failure::{Failure, cannot};
use mesh_bus::{Ask, Encoding, Format, RequestScope};
use mesh_launcher::supervisor::Tier;
use mesh_query::Query;
use mesh_store::{PageSizes, Store, StoreConfig};
use proto_msgs::v2::GetWithdrawalRequest;
use warp::{
    Filter,
    http::StatusCode,
    reply::{Response, with_header, with_status},
};

use super::{Baseline, cost::MeasuredProcess};
use crate::private::{PrivateMesh, Servers, sockets};

pub(super) const DATABASE_URL: &str = "MESH_DATABASE_URL";
/// The variable with the URL whose answer is repeated.
pub(super) const REPEATED_URL: &str = "MESH_REPEATED_URL";
/// Pipelined connections for point reads, here and in the `query` service that is compared.
const POINT_CONNECTIONS: usize = 4;
/// Greatest number of concurrent requests, that of the `query` service.
const IN_FLIGHT: usize = 256;
/// Threads for HTTP of the multi-threaded baselines.
const THREADS: usize = 2;

/// Serves until it is killed. Uses its own thread and runtime, which are part of the measurement.
pub(crate) async fn run(kind: Baseline) -> Result<(), Failure> {
    let served = tokio::task::spawn_blocking(move || serve(kind)).await;
    served.map_err(|error| cannot("serve", &error))?
}

fn serve(kind: Baseline) -> Result<(), Failure> {
    let inherited = ListenFd::from_env().take_tcp_listener(0).map_err(|error| cannot("listen", &error))?;
    let listener = inherited.ok_or_else(|| {
        Failure::configuration("no listening socket is inherited; let `mesh bench` start the baselines")
    })?;
    match kind {
        Baseline::Direct => System::new().block_on(async {
            let query = start_query()?;
            answer(listener, direct(query)).await
        }),
        Baseline::DirectThreads => {
            let query = start_query_on_own_thread()?;
            on_threads(answer(listener, direct(query)))
        }
        Baseline::Hello => System::new().block_on(answer(listener, hello())),
        Baseline::Repeated => System::new().block_on(async { answer(listener, repeated().await?).await }),
    }
}

fn on_threads(serving: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    runtime.map_err(|error| cannot("start threads", &error))?.block_on(serving)
}

async fn answer<F>(listener: TcpListener, filter: F) -> Result<(), Failure>
where
    F: Filter<Extract: warp::Reply, Error = warp::Rejection> + Clone + Send + Sync + 'static,
{
    let listener = tokio::net::TcpListener::from_std(listener).map_err(|error| cannot("listen", &error))?;
    warp::serve(filter).incoming(listener).run().await;
    Ok(())
}

/// The variable that gives the compared `query` service the same number of connections.
pub(super) fn points() -> (String, String) {
    ("MESH_QUERY_POINT_CONNECTIONS".to_owned(), POINT_CONNECTIONS.to_string())
}

fn hello() -> impl Filter<Extract: warp::Reply, Error = warp::Rejection> + Clone {
    warp::path("hello").map(|| "Hello, World!")
}

/// Asks another server once and repeats its answer, with its headers, to every request.
async fn repeated() -> Result<impl Filter<Extract: warp::Reply, Error = warp::Rejection> + Clone, Failure> {
    let url = std::env::var(REPEATED_URL).map_err(|error| cannot("find the answer to repeat", &error))?;
    let asked = async {
        let answer = reqwest::get(&url).await?.error_for_status()?;
        Ok::<_, reqwest::Error>((answer.headers().clone(), answer.bytes().await?))
    };
    let (headers, body) = asked.await.map_err(|error| cannot("read the answer to repeat", &error))?;
    Ok(warp::path("api").map(move || {
        let mut response = Response::new(body.clone().into());
        response.headers_mut().clone_from(&headers);
        response
    }))
}

/// The handler of `query`, called as the bus library calls it, with its reply rendered in the same way.
fn direct(query: Addr<Query>) -> impl Filter<Extract: warp::Reply, Error = warp::Rejection> + Clone {
    warp::path!("api" / "v2" / "withdrawal" / String).and(warp::get()).then(move |id| {
        let query = query.clone();
        async move { read(&query, id).await.unwrap_or_else(refusal) }
    })
}

async fn read(query: &Addr<Query>, id: String) -> Result<Response, String> {
    let asked = query
        .send(Ask(GetWithdrawalRequest { id, ..GetWithdrawalRequest::default() }, RequestScope::default()))
        .await
        .map_err(|error| error.to_string())?;
    let answered = asked.map_err(|problem| problem.to_string())?;
    let encoding = Encoding { format: Format::Json, gzip: false };
    let body = encoding.render(&answered.reply).map_err(|problem| problem.to_string())?;
    Ok(warp::Reply::into_response(with_header(body, "content-type", "application/json")))
}

fn refusal(why: String) -> Response {
    warp::Reply::into_response(with_status(why, StatusCode::SERVICE_UNAVAILABLE))
}

/// Starts the handler on this thread.
fn start_query() -> Result<Addr<Query>, Failure> {
    let url = std::env::var(DATABASE_URL).map_err(|error| cannot("find the database", &error))?;
    let store = open_store(url)?;
    let sizes = PageSizes { default: 1000, greatest: 5000 };
    Ok(Query::new(store, sizes, 100_000, IN_FLIGHT).start())
}

fn start_query_on_own_thread() -> Result<Addr<Query>, Failure> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        System::new().block_on(async {
            // The receiver waits below.
            let _ = sender.send(start_query());
            std::future::pending::<()>().await;
        });
    });
    receiver.recv().map_err(|error| cannot("start the handler", &error))?
}

/// Opens the store as the `query` service does.
pub(super) fn open_store(url: String) -> Result<Store, Failure> {
    let config = StoreConfig {
        url,
        replica_url: None,
        query_timeout: Duration::from_secs(10),
        point_connections: POINT_CONNECTIONS,
        list_connections: 1,
        name: "mesh baseline".to_owned(),
    };
    Store::open(&config).map_err(|error| cannot("open the store", &error))
}

impl PrivateMesh {
    /// Starts a baseline process under the name of its kind; returns its address once it answers `path` with
    /// success. `source`: the server whose answer to `path` a [`Baseline::Repeated`] repeats.
    pub(super) async fn start_baseline(
        &self,
        servers: &Servers,
        kind: Baseline,
        path: &str,
        source: SocketAddr,
    ) -> Result<SocketAddr, Failure> {
        let sockets = sockets()?;
        let address = sockets.http;
        let name = kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let mut spec = self
            .own_program(&name)?
            .arg("baseline")
            .arg(&name)
            .env(DATABASE_URL, servers.database.url())
            .env(REPEATED_URL, format!("http://{source}{path}"));
        spec.sockets = sockets.inherited;
        self.start_program(&name, Tier::Service, spec, format!("http://{address}{path}")).await?;
        Ok(address)
    }

    /// The running processes of these names.
    pub(super) fn watch(&self, names: &[&str]) -> Vec<MeasuredProcess> {
        let rows = self.supervisor.rows();
        let processes = names.iter().flat_map(|name| rows.iter().filter(move |row| row.service == *name));
        processes.map(|row| MeasuredProcess { name: row.service.clone(), pid: row.pid }).collect()
    }
}
